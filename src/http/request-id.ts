import { randomBytes } from 'node:crypto';
import { holdsSecret } from '../keys/secret/secret.ts';
import type { ClientAddresses, Received } from './client-address.ts';

/** The header that has the id of a request, as most proxies and services name it. */
export const REQUEST_ID = 'X-Request-Id';

/** Ids as proxies make them: UUIDs, hexadecimal numbers, `Root=1-67891233-abcdef012345678912345678`. */
const ID = /^[\w.:;@+/=~-]{1,128}$/;

/** In bytes, as the ids of nginx and of traces are. */
const ID_BYTES = 16;
/** So many ids are made at once: one by one takes ten times as long. */
const BATCH = 256;
let batch = '';
let used = 0;

/** A random id, in hexadecimal digits. */
export function newRequestId(): string {
  if (used === batch.length) {
    batch = randomBytes(ID_BYTES * BATCH).toString('hex');
    used = 0;
  }
  const start = used;
  used += 2 * ID_BYTES;
  return batch.slice(start, used);
}

/** The id of a request: the one that a trusted proxy has given it, or a new one. */
export function requestIdOf(request: Received, clients: ClientAddresses): string {
  const given = request.header('x-request-id');
  const isTaken = given !== undefined && ID.test(given) && !holdsSecret(given) && clients.trusts(request.peer());
  return isTaken ? given : newRequestId();
}
