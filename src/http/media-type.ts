import { MIMEType } from 'node:util';
import Negotiator from 'negotiator';
import { memoized } from './memoized.ts';
import { RequestRefused } from './request-refused.ts';

export const GRAPHQL_RESPONSE = 'application/graphql-response+json';
export const JSON_RESPONSE = 'application/json';
/** The media types of GraphQL replies. */
export type ResponseType = typeof GRAPHQL_RESPONSE | typeof JSON_RESPONSE;

const CHARSETS: ReadonlySet<string> = new Set(['utf-8', 'utf8']);
/** In both spellings of the charset, since a range with a parameter only accepts a type that has it. */
const RESPONSES = [...CHARSETS].flatMap((charset) =>
  ([JSON_RESPONSE, GRAPHQL_RESPONSE] as const).map((type) => ({ type, text: `${type}; charset=${charset}` })),
);

/**
 * Picks the media type of a GraphQL reply (GraphQL over HTTP, "Accept"; RFC 9110, section 12.5.1). Without a preference
 * it is `application/json`, which every client can read.
 * @throws RequestRefused 406 when the client accepts neither
 */
export function negotiate(accept: string | undefined): ResponseType {
  return accept === undefined || accept.trim() === '' ? JSON_RESPONSE : negotiateBy(accept);
}

const negotiateBy = memoized(negotiateAnew);

function negotiateAnew(accept: string): ResponseType {
  const best = new Negotiator({ headers: { accept } }).mediaType(RESPONSES.map(({ text }) => text));
  const found = RESPONSES.find(({ text }) => text === best);
  if (!found) throw new RequestRefused(406, 'NOT_ACCEPTABLE', `Replies are ${GRAPHQL_RESPONSE} or ${JSON_RESPONSE}.`);
  return found.type;
}

/** What a Content-Type says. */
export interface MediaType {
  type: string;
  isUtf8: boolean;
}

/** Reads a Content-Type; `type` is empty where it is not a media type. */
export const readMediaType = memoized(readMediaTypeAnew);

function readMediaTypeAnew(contentType: string): MediaType {
  try {
    const { essence, params } = new MIMEType(contentType);
    return { type: essence, isUtf8: CHARSETS.has(params.get('charset')?.toLowerCase() ?? 'utf-8') };
  } catch {
    return { type: '', isUtf8: true };
  }
}
