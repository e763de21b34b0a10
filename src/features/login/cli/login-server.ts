import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { CliError } from '../../../cli/errors.ts';
import { formatList } from '../../../keys/basics/index.ts';
import { readServerUrl, requireEncryption } from '../../../cli/with-keys.ts';

/** The address of a server as an argument. */
export const serverArgs = {
  server: Args.string({ description: 'Address of the server, instead of --server.', ignoreStdin: true }),
};

/** The flags for a server. */
export const serverFlags = {
  server: Flags.string({ description: 'Address of the server. Default: SVC_API_SERVER.', helpValue: '<url>' }),
  insecure: Flags.boolean({ description: 'Send the key even over plain HTTP to another machine.' }),
};

/**
 * The server to log in to, or out of.
 * @param isSent true if a key is sent
 * @param kept the servers of which the only one is the default
 * @throws CliError USAGE; KeysError USAGE, SERVER_INSECURE; what `kept` throws
 */
export function loginServer(
  flags: { address?: string | undefined; server?: string | undefined; insecure?: boolean | undefined },
  env: NodeJS.ProcessEnv,
  { isSent, kept }: { isSent: boolean; kept?: () => readonly string[] },
): string {
  if (flags.address !== undefined && flags.server !== undefined)
    throw new CliError('USAGE', 'The server is given twice: as an argument and by --server. Leave one out.');
  const named = flags.address ?? flags.server ?? env['SVC_API_SERVER'];
  const [only, ...others] = (!named && kept?.()) || [];
  if (others.length > 0)
    throw new CliError(
      'USAGE',
      `You are logged in to ${formatList([only!, ...others])}. Pass the address of one of them.`,
    );
  const given = named || only;
  if (!given) throw new CliError('USAGE', 'The server is missing. Pass its address, or set SVC_API_SERVER.');
  const server = readServerUrl(given);
  if (isSent) requireEncryption(server, flags);
  return server;
}
