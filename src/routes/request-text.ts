import { printable } from '../keys/text.ts';
import { canonicalHost } from './canonical-host.ts';
import { encodeInternational } from './canonical-path.ts';
import { parseMethod } from './pattern.ts';
import type { RequestParts } from './request.ts';

/**
 * Reads a request as people write it. Its path stays as it is: `new URL` would resolve `..`, and more. What is not
 * ASCII is encoded, as browsers do.
 * @param url `https://example.org/path?query`, http or https
 */
export function parseRequest(method: string, url: string): { value: RequestParts } | { fault: string } {
  const parsed = parseMethod(method);
  if ('fault' in parsed) return parsed;
  const [, authority, target = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  const host = canonicalHost(authority ?? '');
  if ('refusal' in host) {
    const reason = authority === undefined ? '' : `: ${host.refusal}`;
    return { fault: `"${printable(url, 200)}" is not a URL${reason}. Write it as https://example.org/path.` };
  }
  const path = target.startsWith('/') ? target : `/${target}`;
  return { value: { method, host: host.value, target: encodeInternational(path) } };
}
