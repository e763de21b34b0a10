import { randomUUID } from 'node:crypto';
import { holdsSecret } from '../keys/secret/secret.ts';
import type { ClientAddresses, Received } from './client-address.ts';

/** The header that has the id of a request, as most proxies and services name it. */
export const REQUEST_ID = 'X-Request-Id';

/** Ids as proxies make them: UUIDs, hexadecimal numbers, `Root=1-67891233-abcdef012345678912345678`. */
const ID = /^[\w.:;@+/=~-]{1,128}$/;

/** The id of a request: the one that a trusted proxy has given it, or a new one. */
export function requestIdOf(request: Received, clients: ClientAddresses): string {
  const given = request.header('x-request-id');
  const isTaken = given !== undefined && ID.test(given) && !holdsSecret(given) && clients.trusts(request.peer());
  return isTaken ? given : randomUUID();
}
