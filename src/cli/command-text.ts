import type { Config } from '@oclif/core/interfaces';

/**
 * A command as it is typed in the CLI that runs it, such as `svc-api apikey list`, or `acme apikey:list` in a host. An
 * empty one is the name of the CLI.
 */
export function commandText({ bin, topicSeparator }: Pick<Config, 'bin' | 'topicSeparator'>, id: string): string {
  return id === '' ? bin : `${bin} ${id.replaceAll(':', topicSeparator)}`;
}
