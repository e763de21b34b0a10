import type { Received } from './client-address.ts';
import { type GraphQLParameters, readBodyParameters, readSearchParameters } from './graphql-parameters.ts';
import { readMediaType } from './media-type.ts';
import type { RequestHead } from './request-head.ts';
import { RequestRefused } from './request-refused.ts';

/** A request to the GraphQL endpoint, whichever server it came by. */
export interface GraphQLRequest extends Received {
  readonly method: string;
  /** The query of its URL with the question mark, percent-encoded as it came; empty if there is none. */
  readonly search: string;
  readonly head: RequestHead;
  /** The whole body, if it may be read. Rejects with `bodyCutOff`, and with `tooLarge` if its length was not said. */
  body(): Promise<Uint8Array>;
  /** The request for resolvers, created when one asks for it. */
  readonly webRequest: Request;
  /** Calls `listener` when the client has gone; ended by the function that it returns. */
  onClientGone(listener: () => void): () => void;
}

/** The most that a body may have, in bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Whether the parameters of a request are in its URL, so that it can only read. */
export function isByUrl({ method }: GraphQLRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Reads the parameters of a request: those in the URL of a GET request, otherwise those in the body alone.
 * @throws RequestRefused, also for what its head says; GraphQLError for a persisted query
 */
export async function readParameters(request: GraphQLRequest): Promise<GraphQLParameters> {
  if (isByUrl(request)) return readSearchParameters(request.search);
  checkContentType(request.head);
  if (Number(request.head.contentLength ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const body = await request.body();
  if (body.byteLength > MAX_BODY_BYTES) throw tooLarge();
  return readBodyParameters(body);
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
    if (size > max) throw tooLarge(max);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The refusal of a request whose body has not arrived as a whole. */
export function bodyCutOff(): RequestRefused {
  return new RequestRefused(400, 'BAD_REQUEST', 'The body was cut off.');
}

/** The refusal of a request whose body is longer than allowed, in bytes. */
export function tooLarge(max = MAX_BODY_BYTES): RequestRefused {
  const message = `The body is larger than ${max} bytes, which is the most that is allowed.`;
  return new RequestRefused(413, 'BODY_TOO_LARGE', message);
}

function unsupported(message: string): RequestRefused {
  return new RequestRefused(415, 'UNSUPPORTED_MEDIA_TYPE', message);
}
