import type { OrRefusal } from '../keys/basics/index.ts';
import type { Context } from 'hono';
import type { Admitted, BearerCheck } from './bearer-check.ts';
import { bodyCutOff, collectBody, parseJson } from './request-body.ts';
import { HonoHead, isDecodable, type Received } from './received.ts';
import { readMediaType, type Reply, RequestRefused } from './replies.ts';

/** The most that a form of somebody who has shown no key may have, in bytes. */
const MAX_FORM_BYTES = 16 * 1024;
const FORM = 'application/x-www-form-urlencoded';

/**
 * Reads the form that a request was sent with by POST.
 * @param what the request asks for, for a message about another method
 * @param maxBytes the most that it may have
 * @throws RequestRefused
 */
export async function readForm(c: Context, what: string, maxBytes = MAX_FORM_BYTES): Promise<URLSearchParams> {
  const { raw, method } = c.req;
  if (method !== 'POST') throw new RequestRefused(405, 'METHOD_NOT_ALLOWED', `${what} by POST only.`);
  const { type, isUtf8 } = readMediaType(c.req.header('content-type') ?? '');
  const encoding = c.req.header('content-encoding') ?? 'identity';
  if (type !== FORM || !isUtf8 || encoding.toLowerCase() !== 'identity')
    throw new RequestRefused(415, 'UNSUPPORTED_MEDIA_TYPE', `The body must be ${FORM} in UTF-8, uncompressed.`);
  return parseParameters(await readText(raw, maxBytes));
}

/**
 * Reads the JSON that a request was sent with by POST.
 * @param maxBytes the most that it may have
 * @throws RequestRefused
 */
export async function readJson(c: Context, what: string, maxBytes = MAX_FORM_BYTES): Promise<unknown> {
  const { raw, method } = c.req;
  if (method !== 'POST') throw new RequestRefused(405, 'METHOD_NOT_ALLOWED', `${what} by POST only.`);
  const { type } = readMediaType(c.req.header('content-type') ?? '');
  if (type !== 'application/json')
    throw new RequestRefused(415, 'UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.');
  return parseJson(await readText(raw, maxBytes), 'The body');
}

/** The parameters in the query of a URL. @throws RequestRefused */
export function readQuery(c: Context): URLSearchParams {
  const { url } = c.req;
  const start = url.indexOf('?');
  return parseParameters(start === -1 ? '' : url.slice(start + 1));
}

function parseParameters(text: string): URLSearchParams {
  if (isDecodable(text)) return new URLSearchParams(text);
  throw new RequestRefused(400, 'BAD_REQUEST', 'The parameters have percent-encoding that is not of UTF-8.');
}

async function readText({ body }: Request, maxBytes: number): Promise<string> {
  try {
    return Buffer.from(await collectBody((body ?? []) as AsyncIterable<Uint8Array> | [], maxBytes)).toString();
  } catch (error) {
    throw error instanceof RequestRefused ? error : bodyCutOff();
  }
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

/** Why somebody is not accepted, as a page says it. */
export interface RefusedPerson {
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Accepts whoever shows a key in a form, by the rules for all requests. @param isSubject see `Received` */
export async function admitKey(
  c: Context,
  key: string,
  check: BearerCheck,
  isSubject = false,
): Promise<OrRefusal<Admitted, RefusedPerson>> {
  const admission = await check.enter(new KeyInForm(c, key, isSubject));
  return 'refusal' in admission ? { refusal: refusedPerson(admission.refusal) } : admission;
}

/** What a page says in place of a reply that programs get. */
export function refusedPerson({ status, text, headers = {} }: Reply): RefusedPerson {
  const [error] = (JSON.parse(text) as { errors: { message: string }[] }).errors;
  const { 'Retry-After': retryAfter } = headers as { 'Retry-After'?: string };
  return {
    // A browser would ask for a password, where a challenge belongs to the answer.
    status: status === 401 || status === 400 ? 403 : status,
    message: status === 400 ? 'This is no API key. Copy all of it, and nothing else.' : error!.message,
    headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter },
  };
}
