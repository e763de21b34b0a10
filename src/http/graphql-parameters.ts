import { GraphQLError } from 'graphql';
import type { ServedRequest } from './received.ts';
import { readMediaType, RequestRefused } from './replies.ts';
import { badRequest, bodyTooLarge, MAX_BODY_BYTES, parseJson } from './request-body.ts';

/** True if the parameters of a request are in its URL, so that it can only read. */
export function isByUrl({ method }: ServedRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The body of a request, if its headers are acceptable. @throws RequestRefused, also as a rejection */
export function readBody(request: ServedRequest): Promise<Uint8Array> {
  checkContentType(request);
  if (Number(request.header('content-length') ?? 0) > MAX_BODY_BYTES) throw bodyTooLarge();
  return request.body();
}

function checkContentType(request: ServedRequest): void {
  const media = readMediaType(request.header('content-type') ?? '');
  if (media.type !== 'application/json') throw unsupported('The Content-Type must be application/json.');
  if (!media.isUtf8) throw unsupported('The charset must be utf-8.');
  const encoding = request.header('content-encoding') ?? 'identity';
  if (encoding.trim().toLowerCase() !== 'identity') throw unsupported('The body must not be compressed.');
}

function unsupported(message: string): RequestRefused {
  return new RequestRefused('UNSUPPORTED_MEDIA_TYPE', message);
}

/** The parameters of a GraphQL request (GraphQL over HTTP, "Request Parameters"). */
export interface GraphQLParameters {
  query: string;
  operationName: string | null;
  variables: Record<string, unknown> | null;
}

/** The longest query string of a URL, in characters. */
export const MAX_SEARCH_LENGTH = 8192;
const NAMES: ReadonlySet<string> = new Set(['query', 'operationName', 'variables', 'extensions']);
const NO_BATCHES =
  'The body is a JSON array, but batches are not supported: turn batching off in the client, and ' +
  'send each operation in a request of its own.';

/**
 * Reads the parameters in the body of a POST request. Ignores the URL.
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
 * Reads the parameters in the URL of a GET request. Others are ignored, and empty ones count as missing.
 * @param search the query string as received, with its question mark; or empty
 * @throws RequestRefused; GraphQLError for a persisted query
 */
export function readSearchParameters(search: string): GraphQLParameters {
  if (search.length > MAX_SEARCH_LENGTH) {
    const message = `The URL's query is longer than ${MAX_SEARCH_LENGTH} characters: send the request by POST.`;
    throw new RequestRefused('URL_TOO_LONG', message);
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
  if (typeof query !== 'string') throw badRequest('"query" must be a string with a GraphQL document.');
  return { query, operationName, variables };
}

/**
 * The error that makes clients with automatic persisted queries, which first send only the hash of a query, send all of
 * it.
 */
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

/** Drops a byte order mark at the start. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
