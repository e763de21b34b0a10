import type { IncomingMessage } from 'node:http';
import { valuesOf } from './header-names.ts';

/** The headers that say how long a body is (RFC 9112, section 6), names and values in turn; empty without one. */
export type Framing = readonly string[];

const CHUNKED: Framing = ['Transfer-Encoding', 'chunked'];
/** Without a length, these have no body. Others have one, of length 0. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS']);

/** The framing of a request to the upstream, which is that of the client; undefined if that is not clear. */
export function requestFraming({ method = '', httpVersionMinor, rawHeaders }: IncomingMessage): Framing | undefined {
  const lengths = valuesOf(rawHeaders, 'content-length');
  const codings = valuesOf(rawHeaders, 'transfer-encoding');
  if (codings.length > 0) {
    const isClear = lengths.length === 0 && httpVersionMinor === 1 && isChunked(codings);
    return isClear ? CHUNKED : undefined;
  }
  if (lengths.length > 1) return undefined;
  const [length] = lengths;
  if (length !== undefined) return ['Content-Length', length];
  return BODILESS.has(method) ? [] : ['Content-Length', '0'];
}

/**
 * The framing of an answer to a client, for a body as the upstream sends it; undefined if that is not clear. Where the
 * upstream ends its answer by closing the connection, the client gets chunks.
 */
export function answerFraming(
  { statusCode = 0, rawHeaders }: IncomingMessage,
  { method, httpVersionMinor }: IncomingMessage,
): Framing | undefined {
  const lengths = valuesOf(rawHeaders, 'content-length');
  const codings = valuesOf(rawHeaders, 'transfer-encoding');
  if (lengths.length > 1 || (codings.length > 0 && !isChunked(codings))) return undefined;
  const [length] = lengths;
  if (length !== undefined && codings.length === 0) return ['Content-Length', length];
  const hasBody = method !== 'HEAD' && statusCode !== 204 && statusCode !== 304;
  return hasBody && httpVersionMinor === 1 ? CHUNKED : [];
}

/** Whether there may be a body. */
export function hasBody(framing: Framing): boolean {
  return framing.length > 0 && framing[1] !== '0';
}

/** Whether a body comes in chunks, so that trailers may follow it. */
export function hasTrailers(framing: Framing): boolean {
  return framing === CHUNKED;
}

function isChunked(codings: readonly string[]): boolean {
  return codings.length === 1 && codings[0]!.toLowerCase() === 'chunked';
}
