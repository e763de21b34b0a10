import { resolve } from 'node:path';
import { printable } from '../../keys/basics/index.ts';
import type { SentCredential, Upstream } from '../../routes/index.ts';
import { CliError } from '../errors.ts';

/** The upstream that a command line names, and what it gets of its own. */
export async function readUpstream(
  address: string | undefined,
  { 'rewrite-host': rewriteHost, 'send-header': headers = [] }: { 'rewrite-host': boolean; 'send-header'?: string[] },
): Promise<Upstream | undefined> {
  if (address === undefined) {
    const flag = rewriteHost ? '--rewrite-host' : headers.length > 0 ? '--send-header' : undefined;
    if (flag === undefined) return undefined;
    const instead = flag === '--rewrite-host' ? '"rewriteHost"' : '"send"';
    throw new CliError(
      'USAGE',
      `${flag} goes with an upstream. Write ${instead} in "upstreams" of svc-api.yaml for others.`,
    );
  }
  const { parseUpstream, problemOfSentHeader } = await import('../../routes/index.ts');
  const parsed = parseUpstream(address);
  if ('refusal' in parsed) throw new CliError('USAGE', parsed.refusal);
  const send = headers.map((text): SentCredential => {
    const [, name, file] = /^([^=]*)=@(.+)$/s.exec(text) ?? [];
    // What stands there may be the secret.
    if (name === undefined || file === undefined)
      throw new CliError('USAGE', '--send-header is not a name and a file. Write it as X-Api-Key=@/run/secrets/app.');
    const problem = problemOfSentHeader(name);
    if (problem !== undefined)
      throw new CliError('USAGE', `--send-header cannot send "${printable(name)}": it ${problem}.`);
    return { in: 'header', name, file: resolve(file) };
  });
  return { address: parsed.value, send, rewriteHost };
}
