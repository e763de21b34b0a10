import { GraphQLError } from 'graphql';
import type { Received, RequestHead } from './received.ts';
import { readMediaType, RequestRefused } from './replies.ts';
import { badRequest, bodyTooLarge, MAX_BODY_BYTES, parseJson } from './request-body.ts';

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

function unsupported(message: string): RequestRefused {
  return new RequestRefused(415, 'UNSUPPORTED_MEDIA_TYPE', message);
}

/** The parameters of a GraphQL request (GraphQL over HTTP, "Request Parameters"). */
export interface GraphQLParameters {
  query: string;
  operationName: string | null;
  variables: Record<string, unknown> | null;
}

/** The most that the query of a URL may have, in characters. */
export const MAX_SEARCH_LENGTH = 8192;
const NAMES: ReadonlySet<string> = new Set(['query', 'operationName', 'variables', 'extensions']);
const NO_BATCHES =
  'The body is a batch, a JSON array of operations, which is not supported: turn batching off in the client, and ' +
  'send each operation in a request of its own.';

/**
 * Reads the parameters in the body of a POSTed request. Nothing is taken from the URL.
 * @throws RequestRefused; GraphQLError for a persisted query
 */
export function readBodyParameters(body: Uint8Array): GraphQLParameters {
  if (body.byteLength > MAX_BODY_BYTES) throw bodyTooLarge();
  let text;
  try {
    text = UTF8.decode(body);
  } catch {
    throw badRequest('The body is not valid UTF-8.');
  }
  if (text === '') throw badRequest('The body is empty; it must be a JSON object with a query.');
  const parameters = parseJson(text, 'The body');
  if (Array.isArray(parameters)) throw badRequest(NO_BATCHES);
  if (!isObject(parameters)) throw badRequest('The body must be a JSON object with a query.');
  return checkParameters(parameters);
}

/**
 * Reads the parameters in the URL of a GET request. Others are ignored, and those that are empty count as missing.
 * @param search the query of the URL as it came, with its question mark; or empty
 * @throws RequestRefused; GraphQLError for a persisted query
 */
export function readSearchParameters(search: string): GraphQLParameters {
  if (search.length > MAX_SEARCH_LENGTH) {
    const message = `The URL's query is longer than ${MAX_SEARCH_LENGTH} characters: send the request by POST.`;
    throw new RequestRefused(414, 'URL_TOO_LONG', message);
  }
  const found = new Map<string, string>();
  for (const pair of search.slice(1).split('&')) {
    const [name, value] = splitAtEquals(pair).map(decode) as [string, string];
    if (!NAMES.has(name)) continue;
    if (found.has(name)) throw badRequest(`"${name}" is in the URL twice.`);
    if (value !== '') found.set(name, value);
  }
  const [variables, extensions] = [found.get('variables'), found.get('extensions')];
  return checkParameters({
    query: found.get('query'),
    operationName: found.get('operationName'),
    variables: variables && parseJson(variables, '"variables" in the URL'),
    extensions: extensions && parseJson(extensions, '"extensions" in the URL'),
  });
}

function checkParameters({
  query,
  operationName = null,
  variables = null,
  extensions = null,
}: Record<string, unknown>): GraphQLParameters {
  if (operationName !== null && typeof operationName !== 'string')
    throw badRequest('"operationName" must be a string.');
  if (variables !== null && !isObject(variables)) throw badRequest('"variables" must be an object.');
  if (extensions !== null && !isObject(extensions)) throw badRequest('"extensions" must be an object.');
  if (query == null && isObject(extensions?.['persistedQuery'])) throw persistedQueryNotSupported();
  if (typeof query !== 'string') throw badRequest('"query" must be a string that holds a GraphQL document.');
  return { query, operationName, variables };
}

/** Clients with automatic persisted queries first send the hash of a query alone. By this text they send all of it. */
function persistedQueryNotSupported(): GraphQLError {
  return new GraphQLError('PersistedQueryNotSupported', { extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } });
}

function splitAtEquals(pair: string): [name: string, value: string] {
  const end = pair.indexOf('=');
  return end === -1 ? [pair, ''] : [pair.slice(0, end), pair.slice(end + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw badRequest("The URL's query is not valid percent-encoded UTF-8.");
  }
}

/** Without a byte order mark at its start, if there is one. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
