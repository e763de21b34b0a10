import { printable } from '../../keys/basics/index.ts';
import { CliError } from '../errors.ts';
import { processTerminal } from '../terminal.ts';

/** Prints the version of svc-api itself; a host has its own. @throws CliError USAGE, OUTPUT_FAILED */
export async function printVersion(version: string, args: readonly string[]): Promise<void> {
  const [, ...others] = args.filter((arg) => arg !== '--json' && arg !== '--no-color');
  if (others.length > 0)
    throw new CliError('USAGE', `Unexpected argument: ${printable(nameOnly(others[0]!))}. Leave it out.`);
  const platform = `${process.platform}-${process.arch}`;
  const json = JSON.stringify({ version, platform, node: process.versions.node }, null, 2);
  await processTerminal.out(
    args.includes('--json') ? `${json}\n` : `svc-api/${version} ${platform} node-${process.version}\n`,
  );
}

/** A flag without its value, which may be secret. */
function nameOnly(arg: string): string {
  return arg.startsWith('-') ? arg.replace(/[=:].*/s, '') : arg;
}
