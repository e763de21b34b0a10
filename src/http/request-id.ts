import { randomBytes } from 'node:crypto';
import { holdsSecret } from '../keys/secret/secret.ts';
import type { ClientAddresses, Received } from './client-address.ts';

/** The header that has the id of a request, as most proxies and services name it. */
export const REQUEST_ID = 'X-Request-Id';

/** Ids as proxies make them: UUIDs, hexadecimal numbers, `Root=1-67891233-abcdef012345678912345678`. */
const ID = /^[\w.:;@+/=~-]{1,128}$/;

/** In bytes, as the ids of nginx and of traces are. */
const ID_BYTES = 16;
/** For so many ids bytes are drawn at once: one by one takes several times as long. */
const BATCH = 256;
let batch = Buffer.alloc(0);
let used = 0;

/** A random id, in hexadecimal digits. A text of its own: a part of a longer one would keep all of that in memory. */
export function newRequestId(): string {
  if (used === batch.length) {
    batch = randomBytes(ID_BYTES * BATCH);
    used = 0;
  }
  const start = used;
  used += ID_BYTES;
  return batch.toString('hex', start, used);
}

/** The id of a request: the one that a trusted proxy has given it, or a new one. */
export function requestIdOf(request: Received, clients: ClientAddresses): string {
  const given = request.header('x-request-id');
  const isTaken = given !== undefined && ID.test(given) && !holdsSecret(given) && clients.trusts(request.peer());
  return isTaken ? given : newRequestId();
}
