import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { digestSecret } from '../keys/secret/secret.ts';
import { readCredentials } from './credentials.ts';
import { JSON_RESPONSE, negotiate, type ResponseType } from './media-type.ts';

/** What the fast path needs from the headers of a request. */
export interface PlainRequest {
  /** The digest of its bearer token. */
  digest: string;
  /** The media type of the reply. */
  type: ResponseType;
}

/** Longer bodies take the full path. */
const MAX_BODY_BYTES = 65_536;
const HOST = /^[a-z0-9.-]+(?::\d{1,5})?$/i;
const CONTENT_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;
const RELEVANT_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'authorization',
  'content-type',
  'content-length',
  'content-encoding',
  'accept',
]);

/** Parses the headers of requests. Caches the last ones of each connection: most clients repeat them. */
export class HeadReader {
  readonly #last = new WeakMap<Socket, { rawHeaders: readonly string[]; request: PlainRequest }>();

  /**
   * Parses the headers of an ordinary GraphQL request: POST, each relevant header at most once, a bearer token, JSON in
   * UTF-8 of a known, moderate length. Undefined for all others, valid or not.
   */
  read({ method, url, rawHeaders, socket }: IncomingMessage): PlainRequest | undefined {
    if (method !== 'POST' || url !== '/graphql') return undefined;
    const last = this.#last.get(socket);
    if (last && isSame(last.rawHeaders, rawHeaders)) return last.request;
    const request = readHead(rawHeaders);
    if (request) this.#last.set(socket, { rawHeaders, request });
    return request;
  }
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

function readHead(rawHeaders: readonly string[]): PlainRequest | undefined {
  const found = new Map<string, string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    if (!RELEVANT_HEADERS.has(name)) continue;
    if (found.has(name)) return undefined;
    found.set(name, rawHeaders[index + 1]!);
  }
  const length = Number(found.get('content-length') ?? Number.NaN);
  if (!(length > 0 && length <= MAX_BODY_BYTES) || found.has('content-encoding')) return undefined;
  if (!HOST.test(found.get('host') ?? '') || !CONTENT_TYPE.test(found.get('content-type') ?? '')) return undefined;
  const credentials = readCredentials(found.get('authorization'));
  const type = typeOf(found.get('accept'));
  return typeof credentials === 'object' && type ? { digest: digestSecret(credentials.token), type } : undefined;
}

function typeOf(accept: string | undefined): ResponseType | undefined {
  if (accept === undefined || accept === '*/*' || accept === JSON_RESPONSE) return JSON_RESPONSE;
  try {
    return negotiate(accept);
  } catch {
    return undefined;
  }
}
