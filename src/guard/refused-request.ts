import { printable } from '../keys/text.ts';
import type { RequestParts } from '../routes/request.ts';

/** What the log says of a request that nobody may make: why, and which one it was, without its query. */
export function refusedRequest(refusal: string, { method, host, target }: RequestParts): string {
  return `${refusal}: ${printable(`${method} ${host}${target.replace(/\?.*/s, '')}`, 200)}`;
}
