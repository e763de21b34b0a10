import { CliError } from '../errors.ts';
import { readServerUrl } from './server-url.ts';
import { requireEncryption } from './target.ts';

/**
 * The server that somebody logs in to, or out of.
 * @param isSent whether a key is sent
 * @throws CliError USAGE; KeysError USAGE, SERVER_INSECURE
 */
export function loginServer(
  flags: { server?: string | undefined; insecure?: boolean | undefined },
  env: NodeJS.ProcessEnv,
  { isSent }: { isSent: boolean },
): string {
  const given = flags.server ?? env['SVC_API_SERVER'];
  if (!given) throw new CliError('USAGE', 'The server is missing. Pass --server <url>, or set SVC_API_SERVER.');
  const server = readServerUrl(given);
  if (isSent) requireEncryption(server, flags);
  return server;
}
