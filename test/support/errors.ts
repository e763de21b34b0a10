import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { wrapped } from '../../src/cli/wrapped.ts';
import { ROOT } from './process.ts';

const COMMANDS = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8');

/**
 * The stderr of a failed command, without a terminal.
 * @param command the command whose usage is shown for the code USAGE
 * @param root the folder of the package
 */
export function errorText(code: string, message: string, command = 'apikey', root = ROOT): string {
  const usage = usageOf(command)
    .map((line, index) => wrapped(index === 0 ? 'Usage: ' : '       ', line, 100))
    .join('\n');
  const help = code === 'USAGE' ? `${usage}\nSee svc-api ${command} --help` : `Reference: ${referenceOf(code, root)}`;
  return `Error: ${message.replaceAll('\n', '\n       ')}\nCode: ${code}\n${help}\n`;
}

/** The link to the documentation of an error code. */
export function referenceOf(code: string, root = ROOT): string {
  return `${pathToFileURL(join(root, 'docs/errors.md')).href}#${code.toLowerCase()}`;
}

/** The usage of a command in its help, one form a line. Errors wrap it. */
function usageOf(command: string): string[] {
  // The help has a page for each of its two forms.
  if (command === 'apikey') return ['--create', '--delete'].flatMap((form) => usageOf(`apikey ${form}`));
  const [, section = ''] = COMMANDS.split(`\n## svc-api ${command}\n`);
  const [, usage = ''] = /^USAGE\n(.*?)\n\n/ms.exec(section) ?? [];
  return usage
    .split(/^ {2}\$ /m)
    .slice(1)
    .map((lines) => lines.trim().replaceAll(/\s+/g, ' '));
}
