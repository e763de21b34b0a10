import type { ErrorCode } from '../keys/errors.ts';

/** Codes of the rules that only the command line, or the start of a server, can meet. */
type LocalCode =
  | `STORE_${string}`
  | `BACKUP_${string}`
  | `RESTORE_${string}`
  | `CONFIG_${string}`
  | `SERVER_${string}`
  | 'CREDENTIALS_INVALID'
  | 'USAGE'
  | 'SECRET_INVALID'
  | 'OUTPUT_FAILED'
  | 'LISTEN_FAILED'
  | 'TLS_INVALID'
  | 'SCHEMA_INVALID'
  | 'HOST_INVALID'
  | 'OPTION_INVALID'
  | 'GRAPHQL_UNSUPPORTED'
  | 'NODE_UNSUPPORTED'
  | 'ID_TAKEN'
  | 'SECRET_TAKEN'
  | 'PREFIX_TAKEN';

/** Codes of HTTP and of GraphQL, beside those of the rules. */
type ProtocolCode =
  | 'UNAUTHENTICATED'
  | 'INVALID_REQUEST'
  | 'BAD_REQUEST'
  | 'METHOD_NOT_ALLOWED'
  | 'NOT_ACCEPTABLE'
  | 'TIMEOUT'
  | 'BODY_TOO_LARGE'
  | 'URL_TOO_LONG'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'EXPECTATION_FAILED'
  | 'HEADERS_TOO_LARGE'
  | 'PERSISTED_QUERY_NOT_SUPPORTED'
  | 'GRAPHQL_PARSE_FAILED'
  | 'GRAPHQL_VALIDATION_FAILED'
  | 'INTROSPECTION_OFF'
  | 'COST_EXCEEDED'
  | 'TIME_EXCEEDED'
  | 'RATE_LIMITED'
  | 'SERVICE_UNAVAILABLE'
  | 'BAD_GATEWAY'
  | 'GATEWAY_TIMEOUT'
  | 'STORE_READONLY'
  | 'INTERNAL_SERVER_ERROR';

/** Every code that a reply can carry, in `errors[].extensions.code`. Codes are stable: clients compare them. */
export type ReplyCode = ProtocolCode | Exclude<ErrorCode, LocalCode>;

/** The status of a code's replies: one of HTTP, or that of a GraphQL reply, whose errors come beside data. */
type ReplyStatus = number | 'GraphQL';

/** What each code means, and with which status it comes. `docs/http.md` has it as a table. */
export const REPLY_CODES: Readonly<Record<ReplyCode, readonly [status: ReplyStatus, meaning: string]>> = {
  UNAUTHENTICATED: [401, 'No API key, or one that is not valid.'],
  INVALID_REQUEST: [400, 'The credentials are malformed, or there are several.'],
  BAD_REQUEST: [400, 'The request is not valid: its HTTP, its body, or its operation.'],
  NOT_FOUND: [404, 'There is nothing at this address. As a GraphQL error: no API key has this id or name.'],
  METHOD_NOT_ALLOWED: [405, 'The address is for another method; GraphQL has queries alone by GET.'],
  NOT_ACCEPTABLE: [406, 'The client accepts neither media type of the replies.'],
  TIMEOUT: [408, 'The request took too long to arrive.'],
  BODY_TOO_LARGE: [413, 'The body is larger than is allowed.'],
  URL_TOO_LONG: [414, 'The query of a URL is longer than is allowed.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The body is of another type or charset than the address takes, or compressed.'],
  EXPECTATION_FAILED: [417, 'The Expect header asks for something other than 100-continue.'],
  RATE_LIMITED: [429, 'A limit of the key is used up, or there were too many failed credentials; see Retry-After.'],
  HEADERS_TOO_LARGE: [431, 'The headers are larger than is allowed.'],
  INTERNAL_SERVER_ERROR: [500, 'A failure of the server; extensions.requestId finds it in the log.'],
  BAD_GATEWAY: [502, 'From guard: the service behind it cannot be reached, or did not answer properly.'],
  SERVICE_UNAVAILABLE: [503, 'The key store does not answer. Try again later.'],
  GATEWAY_TIMEOUT: [504, 'From guard: the service behind it took too long to answer.'],
  STORE_READONLY: ['GraphQL', 'This server has no right to change the key store.'],
  PERSISTED_QUERY_NOT_SUPPORTED: ['GraphQL', 'A hash in place of a query: send the query.'],
  GRAPHQL_PARSE_FAILED: ['GraphQL', 'The document has a syntax error.'],
  GRAPHQL_VALIDATION_FAILED: ['GraphQL', 'The document or its variables do not fit the schema.'],
  LIMIT_EXCEEDED: ['GraphQL', 'The document is larger than is allowed; see the limits below.'],
  INTROSPECTION_OFF: ['GraphQL', 'The server does not tell its schema, by __schema or __type.'],
  COST_EXCEEDED: [
    'GraphQL',
    'The request costs, or its answer is, more than is allowed; extensions has cost and limit.',
  ],
  TIME_EXCEEDED: ['GraphQL', 'The request took longer than is allowed, and was abandoned.'],
  FORBIDDEN: ['GraphQL', 'The key lacks a permission; extensions.missing lists which. From bearerAuth: status 403.'],
  NAME_INVALID: ['GraphQL', 'The name breaks its rule.'],
  DESCRIPTION_INVALID: ['GraphQL', 'The description breaks its rule.'],
  ROLE_INVALID: ['GraphQL', 'There is no such role.'],
  PERMISSION_INVALID: ['GraphQL', 'There is no such permission.'],
  NO_GRANTS: ['GraphQL', 'A key needs at least one role or permission.'],
  EXPIRY_INVALID: ['GraphQL', 'The expiry or a duration cannot be read, is in the past, or is too far away.'],
  LIMIT_INVALID: ['GraphQL', 'A limit breaks its rule.'],
  NETWORK_INVALID: ['GraphQL', 'A network breaks its rule.'],
  INPUT_INVALID: ['GraphQL', 'Another argument breaks its rule.'],
  DECLARATION_INVALID: ['GraphQL', 'The declared keys break rules; the message names each place.'],
  NAME_TAKEN: ['GraphQL', 'Another key has this name.'],
  NAME_CONFUSABLE: ['GraphQL', 'The name looks like that of another key, in other characters.'],
  ROTATION_IN_PROGRESS: ['GraphQL', 'The key has two secrets already.'],
  ROTATION_NONE: ['GraphQL', 'The key has only one secret.'],
  CHAIN_TOO_LONG: ['GraphQL', 'The key would have too many ancestors: at most 16 keys create one another.'],
  POLICY_VIOLATED: ['GraphQL', 'The policy of the installation demands something else; the message names the rule.'],
  REQUEST_DECIDED: ['GraphQL', 'Somebody has decided on the request of that application already.'],
  CONSENT_OFF: ['GraphQL', '`consent` in `svc-api.yaml` does not let applications ask for keys in that way.'],
  TOO_MANY_REQUESTS: ['GraphQL', 'This key has tried too many codes of applications.'],
  TAKEOVER_REFUSED: ['GraphQL', 'A declared key was created by another key.'],
  PRUNE_REFUSED: ['GraphQL', 'Pruning would delete keys that no apply made, or the key that asks for it.'],
};
