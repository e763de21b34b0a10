import { readMediaType } from './media-type.ts';
import { RequestRefused } from './request-refused.ts';

/** The parameters of a GraphQL request (GraphQL over HTTP, "Request Parameters"). */
export interface GraphQLParameters {
  query: string;
  operationName: string | null;
  variables: Record<string, unknown> | null;
}

/** The most that a body may have, in bytes. */
const MAX_BODY_BYTES = 1024 * 1024;
/** How deep a body's arrays and objects may nest. */
const MAX_BODY_NESTING = 64;

/**
 * Reads a POSTed GraphQL request. Nothing of it is taken from the URL.
 * @throws RequestRefused
 */
export async function readGraphQLRequest(request: Request): Promise<GraphQLParameters> {
  checkContentType(request.headers);
  return parseGraphQLRequest(await readBody(request));
}

/** Reads the body of a GraphQL request. @throws RequestRefused */
export function parseGraphQLRequest(text: string): GraphQLParameters {
  checkNesting(text);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw badRequest(
      text === '' ? 'The body is empty; it must be a JSON object with a query.' : 'The body is not valid JSON.',
    );
  }
  if (!isObject(body)) throw badRequest('The body must be a JSON object with a query.');
  const { query, operationName = null, variables = null, extensions = null } = body;
  if (typeof query !== 'string') throw badRequest('"query" must be a string that holds a GraphQL document.');
  if (operationName !== null && typeof operationName !== 'string')
    throw badRequest('"operationName" must be a string.');
  if (variables !== null && !isObject(variables)) throw badRequest('"variables" must be an object.');
  if (extensions !== null && !isObject(extensions)) throw badRequest('"extensions" must be an object.');
  return { query, operationName, variables };
}

function checkContentType(headers: Headers): void {
  const media = readMediaType(headers.get('content-type'));
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (media?.type !== 'application/json') throw unsupported('The Content-Type must be application/json.');
  if (!media.isUtf8) throw unsupported('The charset must be utf-8.');
  if (encoding !== 'identity') throw unsupported('The body must not be compressed.');
}

async function readBody(request: Request): Promise<string> {
  const length = request.headers.get('content-length');
  if (Number(length ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  // Node keeps a body to the length that it was announced with, and one that is read at once takes no stream.
  const bytes = length === null ? await readStream(request) : await request.arrayBuffer().catch(cutOff);
  if (bytes.byteLength > MAX_BODY_BYTES) throw tooLarge();
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw badRequest('The body is not valid UTF-8.');
  }
}

async function readStream(request: Request): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read().catch(cutOff)) ?? { done: true, value: undefined };
    if (done) return Buffer.concat(chunks);
    size += value.byteLength;
    if (size > MAX_BODY_BYTES) {
      await reader?.cancel().catch(() => {});
      throw tooLarge();
    }
    chunks.push(value);
  }
}

function cutOff(): never {
  throw badRequest('The body was cut off.');
}

function tooLarge(): RequestRefused {
  return new RequestRefused(
    413,
    'BODY_TOO_LARGE',
    `The body is larger than ${MAX_BODY_BYTES} bytes, which is the most that is allowed.`,
  );
}

/** Bounds what recursive code will meet later, without parsing: brackets outside strings are counted. */
function checkNesting(text: string): void {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth > MAX_BODY_NESTING)
      throw badRequest(`The body nests deeper than ${MAX_BODY_NESTING} levels, which is the most that is allowed.`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function badRequest(message: string): RequestRefused {
  return new RequestRefused(400, 'BAD_REQUEST', message);
}

function unsupported(message: string): RequestRefused {
  return new RequestRefused(415, 'UNSUPPORTED_MEDIA_TYPE', message);
}
