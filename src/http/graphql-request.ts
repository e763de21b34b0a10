import type { Received } from './client-address.ts';
import { bodyTooLarge, MAX_BODY_BYTES } from './graphql-parameters.ts';
import { readMediaType } from './media-type.ts';
import type { RequestHead } from './request-head.ts';
import { RequestRefused } from './request-refused.ts';

/** A request to the GraphQL endpoint, whichever server it came by. */
export interface GraphQLRequest extends Received {
  readonly method: string;
  /** The query of its URL with the question mark, percent-encoded as it came; empty if there is none. */
  readonly search: string;
  readonly head: RequestHead;
  /** The whole body. Rejects with `bodyCutOff`, and may with `bodyTooLarge` before all of it has come. */
  body(): Promise<Uint8Array>;
  /** The request for resolvers, created when one asks for it. */
  readonly webRequest: Request;
  /** Calls `listener` when the client has gone; ended by the function that it returns. */
  onClientGone(listener: () => void): () => void;
}

/** Whether the parameters of a request are in its URL, so that it can only read. */
export function isByUrl({ method }: GraphQLRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The body of a request, if its head allows to read it. @throws RequestRefused, also as a rejection */
export function readBody(request: GraphQLRequest): Promise<Uint8Array> {
  checkContentType(request.head);
  if (Number(request.head.contentLength ?? 0) > MAX_BODY_BYTES) throw bodyTooLarge();
  return request.body();
}

function checkContentType({ contentType = '', contentEncoding = 'identity' }: GraphQLRequest['head']): void {
  const media = readMediaType(contentType);
  if (media.type !== 'application/json') throw unsupported('The Content-Type must be application/json.');
  if (!media.isUtf8) throw unsupported('The charset must be utf-8.');
  if (contentEncoding.trim().toLowerCase() !== 'identity') throw unsupported('The body must not be compressed.');
}

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

function unsupported(message: string): RequestRefused {
  return new RequestRefused(415, 'UNSUPPORTED_MEDIA_TYPE', message);
}
