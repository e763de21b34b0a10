import { RequestRefused } from './replies.ts';

/** The most that a body may have, in bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** A body that comes in pieces, as long as it is not too long, in bytes. @throws RequestRefused */
export async function collectBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  max = MAX_BODY_BYTES,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > max) throw bodyTooLarge(max);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The refusal of a request whose body has not arrived as a whole. */
export function bodyCutOff(): RequestRefused {
  return new RequestRefused(400, 'BAD_REQUEST', 'The body was cut off.');
}

/** The refusal of a request whose body is longer than allowed, in bytes. */
export function bodyTooLarge(max = MAX_BODY_BYTES): RequestRefused {
  const message = `The body is larger than ${max} bytes, which is the most that is allowed.`;
  return new RequestRefused(413, 'BODY_TOO_LARGE', message);
}
