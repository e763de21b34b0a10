import { RequestRefused } from './graphql-request.ts';

export const GRAPHQL_RESPONSE = 'application/graphql-response+json';
export const JSON_RESPONSE = 'application/json';
/** The media types of GraphQL replies. */
export type ResponseType = typeof GRAPHQL_RESPONSE | typeof JSON_RESPONSE;

/**
 * Picks the media type of a GraphQL reply (GraphQL over HTTP, "Accept"; RFC 9110, section 12.5.1). Without a wish it is
 * `application/json`, which every client can read.
 * @throws RequestRefused 406 when the client accepts neither
 */
export function negotiate(accept: string | null): ResponseType {
  if (accept === null || accept.trim() === '') return JSON_RESPONSE;
  const ranges = accept.split(',').map(readRange);
  const graphql = qualityOf(GRAPHQL_RESPONSE, ranges);
  const json = qualityOf(JSON_RESPONSE, ranges);
  if (graphql.quality === 0 && json.quality === 0) {
    throw new RequestRefused(406, 'NOT_ACCEPTABLE', `Replies are ${GRAPHQL_RESPONSE} or ${JSON_RESPONSE}.`);
  }
  const named =
    graphql.specificity > json.specificity || (graphql.specificity === 2 && graphql.quality === json.quality);
  return graphql.quality > json.quality || (graphql.quality === json.quality && named)
    ? GRAPHQL_RESPONSE
    : JSON_RESPONSE;
}

interface MediaRange {
  type: string;
  quality: number;
}

function readRange(range: string): MediaRange {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const given = parameters.find((parameter) => parameter.startsWith('q='));
  const quality = given === undefined ? 1 : Number(given.slice(2));
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  const readable = charset === undefined || charset === 'utf-8' || charset === 'utf8';
  return { type, quality: readable && quality >= 0 && quality <= 1 ? quality : 0 };
}

/** The quality of the most specific range that a type falls under. */
function qualityOf(type: string, ranges: readonly MediaRange[]): { quality: number; specificity: number } {
  const wanted = ['*/*', 'application/*', type];
  return ranges.reduce(
    (best, range) => {
      const specificity = wanted.indexOf(range.type);
      return specificity > best.specificity ? { quality: range.quality, specificity } : best;
    },
    { quality: 0, specificity: -1 },
  );
}
