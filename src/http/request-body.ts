import type { IncomingMessage } from 'node:http';
import type { Context } from 'hono';
import { type ErrorReply, readMediaType, RequestRefused } from './replies.ts';
import { type OrRefusal, readBounded, TooLong } from '../keys/basics/index.ts';
import type { Admitted, BearerCheck } from './bearer-check.ts';
import { HonoHead, isDecodable, type Received } from './received.ts';

/** The largest body, in bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;
/** The deepest nesting of arrays and objects in JSON. */
const MAX_NESTING = 64;

/** Reads the body of a request of the Fetch standard. @param max its largest size @throws RequestRefused */
export async function readFetched({ body }: Request, max = MAX_BODY_BYTES): Promise<Buffer> {
  try {
    return (await readBounded(body, max)) ?? Buffer.alloc(0);
  } catch (error) {
    throw error instanceof TooLong ? bodyTooLarge(max) : bodyCutOff();
  }
}

/**
 * Reads a body, and then removes its listeners: a kept connection holds its request until the next one, and with it
 * everything that the listeners refer to.
 * @throws RequestRefused
 */
export function readBody(incoming: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BODY_BYTES) stop(() => reject(bodyTooLarge()));
    };
    const onEnd = () => stop(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    const onError = () => stop(() => reject(bodyCutOff()));
    const stop = (settle: () => void) => {
      incoming.off('data', onData).off('end', onEnd).off('error', onError);
      settle();
    };
    incoming.on('data', onData).on('end', onEnd).on('error', onError);
  });
}

/** The refusal of a request whose body has not arrived completely. */
export function bodyCutOff(): RequestRefused {
  return new RequestRefused('BAD_REQUEST', 'The body was cut off.');
}

/** The refusal of a request whose body is too large, in bytes. */
export function bodyTooLarge(max = MAX_BODY_BYTES): RequestRefused {
  const message = `The body is larger than ${max} bytes, which is the most that is allowed.`;
  return new RequestRefused('BODY_TOO_LARGE', message);
}

/**
 * Parses JSON that is not nested too deep.
 * @param what the subject of errors, at the start of a sentence
 * @throws RequestRefused
 */
export function parseJson(text: string, what: string): unknown {
  checkNesting(text, what);
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(`${what} is not valid JSON.`);
  }
}

const [QUOTE, BACKSLASH, BRACE, CLOSING_BRACE, BRACKET, CLOSING_BRACKET] = Array.from('"\\{}[]', (character) =>
  character.charCodeAt(0),
);

/** Limits the depth for later recursive code, without parsing, by counting brackets outside strings. */
function checkNesting(text: string, what: string): void {
  if (!hasManyBrackets(text)) return;
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
    if (depth > MAX_NESTING)
      throw badRequest(`${what} nests deeper than ${MAX_NESTING} levels, which is the most that is allowed.`);
  }
}

/** True if a text has enough opening brackets, even in strings, to nest too deep. Few texts do. */
function hasManyBrackets(text: string): boolean {
  let count = 0;
  for (const bracket of ['{', '['])
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      count += 1;
      if (count > MAX_NESTING) return true;
    }
  return false;
}

/** The refusal of a malformed request. */
export function badRequest(message: string): RequestRefused {
  return new RequestRefused('BAD_REQUEST', message);
}

/** The largest form from a client without a key, in bytes. */
const MAX_FORM_BYTES = 16 * 1024;
const FORM = 'application/x-www-form-urlencoded';

/**
 * Reads the form in a POST request.
 * @param what the purpose of the request, for a message about other methods
 * @param maxBytes its largest size
 * @throws RequestRefused
 */
export async function readForm(c: Context, what: string, maxBytes = MAX_FORM_BYTES): Promise<URLSearchParams> {
  const { raw, method } = c.req;
  if (method !== 'POST') throw new RequestRefused('METHOD_NOT_ALLOWED', `${what} by POST only.`);
  const { type, isUtf8 } = readMediaType(c.req.header('content-type') ?? '');
  const encoding = c.req.header('content-encoding') ?? 'identity';
  if (type !== FORM || !isUtf8 || encoding.toLowerCase() !== 'identity')
    throw new RequestRefused('UNSUPPORTED_MEDIA_TYPE', `The body must be ${FORM} in UTF-8, uncompressed.`);
  return parseParameters((await readFetched(raw, maxBytes)).toString());
}

/**
 * Reads the JSON in a POST request.
 * @param maxBytes its largest size
 * @throws RequestRefused
 */
export async function readJson(c: Context, what: string, maxBytes = MAX_FORM_BYTES): Promise<unknown> {
  const { raw, method } = c.req;
  if (method !== 'POST') throw new RequestRefused('METHOD_NOT_ALLOWED', `${what} by POST only.`);
  const { type } = readMediaType(c.req.header('content-type') ?? '');
  if (type !== 'application/json')
    throw new RequestRefused('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.');
  return parseJson((await readFetched(raw, maxBytes)).toString(), 'The body');
}

/** The parameters in the query string of a URL. @throws RequestRefused */
export function readQuery(c: Context): URLSearchParams {
  const { url } = c.req;
  const start = url.indexOf('?');
  return parseParameters(start === -1 ? '' : url.slice(start + 1));
}

function parseParameters(text: string): URLSearchParams {
  if (isDecodable(text)) return new URLSearchParams(text);
  throw new RequestRefused('BAD_REQUEST', 'The parameters are not valid percent-encoded UTF-8.');
}

/** A key in a form, in place of the header that programs send. */
class KeyInForm extends HonoHead implements Received {
  readonly isSubject: boolean;
  readonly #key: string;

  constructor(c: Context, key: string, isSubject: boolean) {
    super(c);
    this.isSubject = isSubject;
    this.#key = key;
  }

  override header(name: string): string | undefined {
    return name === 'authorization' ? `Bearer ${this.#key}` : super.header(name);
  }
}

/** A refusal, as a page shows it. */
export interface PageRefusal {
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Checks the key in a form, by the rules for all requests. @param isSubject see `Received` */
export async function admitKey(
  c: Context,
  key: string,
  check: BearerCheck,
  isSubject = false,
): Promise<OrRefusal<Admitted, PageRefusal>> {
  const admission = await check.enter(new KeyInForm(c, key, isSubject));
  return 'refusal' in admission ? { refusal: pageRefusal(admission.refusal) } : admission;
}

/** The words of a page in place of the reply to programs. */
export function pageRefusal({ status, error, headers = {} }: ErrorReply): PageRefusal {
  const { 'Retry-After': retryAfter } = headers as { 'Retry-After'?: string };
  return {
    // With a challenge, a browser would ask for a password.
    status: status === 401 || status === 400 ? 403 : status,
    message: status === 400 ? 'This is not an API key. Copy all of it, and nothing else.' : error.message,
    headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter },
  };
}
