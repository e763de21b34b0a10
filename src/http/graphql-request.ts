import type { CheckedRequest } from './bearer-check.ts';
import { readMediaType } from './media-type.ts';
import type { RequestHead } from './request-head.ts';
import { RequestRefused } from './request-refused.ts';

/** A request to the GraphQL endpoint, whichever server it came by. */
export interface GraphQLRequest extends CheckedRequest {
  readonly method: string;
  readonly head: RequestHead;
  /** The whole body, if it may be read. One without a length goes by `collectBody`. Rejects with `bodyCutOff`. */
  body(): Promise<Uint8Array>;
  /** The request for resolvers, created when one asks for it. */
  readonly webRequest: Request;
  /** Calls `listener` when the client has gone; ended by the function that it returns. */
  onClientGone(listener: () => void): () => void;
}

/** The parameters of a GraphQL request (GraphQL over HTTP, "Request Parameters"). */
export interface GraphQLParameters {
  query: string;
  operationName: string | null;
  variables: Record<string, unknown> | null;
}

/** The most that a body may have, in bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;
/** How deep a body's arrays and objects may nest. */
const MAX_BODY_NESTING = 64;

/**
 * The body of a POSTed GraphQL request.
 * @throws RequestRefused, also for what its head says
 */
export function readBody(request: GraphQLRequest): Promise<Uint8Array> {
  const { contentLength } = request.head;
  checkContentType(request.head);
  if (Number(contentLength ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  // Node keeps a body to the length that it was announced with.
  return request.body();
}

/**
 * Reads the parameters in the body of a GraphQL request. Nothing is taken from the URL.
 * @throws RequestRefused
 */
export function readParameters(body: Uint8Array): GraphQLParameters {
  if (body.byteLength > MAX_BODY_BYTES) throw tooLarge();
  let text;
  try {
    text = UTF8.decode(body);
  } catch {
    throw badRequest('The body is not valid UTF-8.');
  }
  return parseParameters(text);
}

function parseParameters(text: string): GraphQLParameters {
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

function checkContentType({ contentType = '', contentEncoding = 'identity' }: GraphQLRequest['head']): void {
  const media = readMediaType(contentType);
  if (media.type !== 'application/json') throw unsupported('The Content-Type must be application/json.');
  if (!media.isUtf8) throw unsupported('The charset must be utf-8.');
  if (contentEncoding.trim().toLowerCase() !== 'identity') throw unsupported('The body must not be compressed.');
}

/** Without a byte order mark at its start, if there is one. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** A body that comes in pieces, as long as it is not too long. @throws RequestRefused */
export async function collectBody(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The refusal of a request whose body has not arrived as a whole. */
export function bodyCutOff(): RequestRefused {
  return badRequest('The body was cut off.');
}

function tooLarge(): RequestRefused {
  return new RequestRefused(
    413,
    'BODY_TOO_LARGE',
    `The body is larger than ${MAX_BODY_BYTES} bytes, which is the most that is allowed.`,
  );
}

const [QUOTE, BACKSLASH, BRACE, CLOSING_BRACE, BRACKET, CLOSING_BRACKET] = Array.from('"\\{}[]', (character) =>
  character.charCodeAt(0),
);

/** Bounds what recursive code will meet later, without parsing: brackets outside strings are counted. */
function checkNesting(text: string): void {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charCodeAt(index);
    if (inString) {
      if (character === BACKSLASH) index += 1;
      else if (character === QUOTE) inString = false;
    } else if (character === QUOTE) inString = true;
    else if (character === BRACE || character === BRACKET) depth += 1;
    else if (character === CLOSING_BRACE || character === CLOSING_BRACKET) depth -= 1;
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
