import type { Context } from 'hono';
import { bodyCutOff, collectBody } from './graphql-request.ts';
import { readMediaType } from './media-type.ts';
import { isDecodable } from './request-head.ts';
import { RequestRefused } from './request-refused.ts';

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
