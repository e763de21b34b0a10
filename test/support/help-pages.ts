import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './process.ts';

export interface HelpPage {
  /** As typed, without `svc-api`. */
  command: string;
  /** The example commands, as pasted. */
  examples: string[];
}

/** The pages of docs/cli.md that have examples. */
export function documentedPages(): HelpPage[] {
  const pages = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8').matchAll(
    /^## svc-api ([^\n]*)\n\n```text\n(.*?)^```$/gms,
  );
  return Array.from(pages, ([, command, page]) => ({ command: command!, examples: examplesOf(page!) })).filter(
    ({ examples }) => examples.length > 0,
  );
}

/** The example commands on a help page. */
export function examplesOf(page: string): string[] {
  const [, section = ''] = /^EXAMPLES\n(.*?)(?=^\S|$(?![^]))/ms.exec(page) ?? [];
  const commands = section.matchAll(/(?:^ {4}[^\n]*\n?)+/gm);
  return Array.from(commands, ([lines]) => lines.trim().replace(/^\$ /, ''));
}
