import { MIMEType } from 'node:util';
import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';
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

/** What most requests send is read once. Longer texts, which differ from request to request, are not kept. */
const MAX_KEPT_LENGTH = 200;
const negotiated = new LRUCache<string, ResponseType>({ max: 100 });
const mediaTypes = new LRUCache<string, MediaType>({ max: 100 });

/**
 * Picks the media type of a GraphQL reply (GraphQL over HTTP, "Accept"; RFC 9110, section 12.5.1). Without a preference
 * it is `application/json`, which every client can read.
 * @throws RequestRefused 406 when the client accepts neither
 */
export function negotiate(accept: string | undefined): ResponseType {
  if (accept === undefined) return JSON_RESPONSE;
  const known = negotiated.get(accept);
  if (known) return known;
  const type = negotiateAnew(accept);
  if (accept.length <= MAX_KEPT_LENGTH) negotiated.set(accept, type);
  return type;
}

function negotiateAnew(accept: string): ResponseType {
  if (accept.trim() === '') return JSON_RESPONSE;
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

/** Reads a Content-Type; undefined where it is not a media type. */
export function readMediaType(contentType: string): MediaType | undefined {
  const known = mediaTypes.get(contentType);
  if (known) return known;
  try {
    const { essence, params } = new MIMEType(contentType);
    const media = { type: essence, isUtf8: CHARSETS.has(params.get('charset')?.toLowerCase() ?? 'utf-8') };
    if (contentType.length <= MAX_KEPT_LENGTH) mediaTypes.set(contentType, media);
    return media;
  } catch {
    return undefined;
  }
}
