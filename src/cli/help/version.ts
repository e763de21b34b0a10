import { processTerminal, type Terminal } from '../terminal.ts';
import type { HelpTopic } from './topics.ts';

export const VERSION_TOPIC: HelpTopic = {
  summary: 'Show the version of svc-api and of Node.',
  sections: [{ header: 'USAGE', body: '$ svc-api version [--json]\n$ svc-api --version\n$ svc-api -v' }],
};

/** Prints the version of svc-api itself, for `svc-api version`; a host has its own. @throws CliError OUTPUT_FAILED */
export async function printVersion(
  version: string,
  args: readonly string[],
  terminal: Pick<Terminal, 'out'> = processTerminal,
): Promise<void> {
  const platform = `${process.platform}-${process.arch}`;
  const json = JSON.stringify({ version, platform, node: process.versions.node }, null, 2);
  await terminal.out(
    args.includes('--json') ? `${json}\n` : `svc-api/${version} ${platform} node-${process.version}\n`,
  );
}
