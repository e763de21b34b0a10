import type { ErrorEntry } from './table.ts';

/** A code of replies, for a page about HTTP. */
export type ReplyEntry = Pick<ErrorEntry, 'status' | 'graphql' | 'meaning'>;

/** Codes of HTTP replies that no command fails with. */
export const HTTP_ERRORS = {
  INVALID_REQUEST: { status: 400, meaning: 'The credentials are malformed, or the request has several.' },
  BAD_REQUEST: { status: 400, meaning: 'The HTTP, the body or the operation of the request is not valid.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    meaning: 'The address needs another method. GraphQL over GET accepts only queries.',
  },
  NOT_ACCEPTABLE: { status: 406, meaning: 'The client accepts none of the media types of replies.' },
  TIMEOUT: { status: 408, meaning: 'The request took too long to arrive.' },
  BODY_TOO_LARGE: { status: 413, meaning: 'The body is too large.' },
  URL_TOO_LONG: { status: 414, meaning: 'The query string of the URL is too long.' },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    meaning: 'The body has an unsupported media type or charset, or is compressed.',
  },
  EXPECTATION_FAILED: { status: 417, meaning: 'The Expect header is not 100-continue.' },
  HEADERS_TOO_LARGE: { status: 431, meaning: 'The headers are too large.' },
  INTERNAL_SERVER_ERROR: {
    status: 500,
    meaning: 'The server failed. Search its log for the id in `extensions.requestId`.',
  },
  SERVICE_UNAVAILABLE: { status: 503, meaning: 'The key store does not answer. Try again later.' },
  OVERLOADED: {
    status: 503,
    meaning: 'Too many large requests are waiting. Nothing was done. Retry-After says when to try again.',
  },
  PERSISTED_QUERY_NOT_SUPPORTED: {
    graphql: true,
    meaning: 'The request has a hash instead of a query. Send the query.',
  },
  GRAPHQL_PARSE_FAILED: { graphql: true, meaning: 'The document has a syntax error.' },
  GRAPHQL_VALIDATION_FAILED: { graphql: true, meaning: 'The document or its variables do not fit the schema.' },
  INTROSPECTION_OFF: {
    graphql: true,
    meaning: 'Introspection is off, so the server does not answer `__schema` and `__type`.',
  },
  COST_EXCEEDED: {
    graphql: true,
    meaning: 'The request costs too much, or its answer is too large. `extensions` has the cost and the limit.',
  },
  TIME_EXCEEDED: { graphql: true, meaning: 'The request took too long, and the server stopped it.' },
} satisfies Readonly<Record<string, ReplyEntry>>;
