/** HTTP: the check of keys, replies, and the server. */
export { type Authenticated, bearerAuth, type BearerEnv } from './bearer-auth.ts';
export type { AppOptions, AppPlaces, HttpApp, RouteContext, ServiceApp } from './app.ts';
export { type Admission, type Admitted, BearerCheck, type CheckOptions, type Discovery } from './bearer-check.ts';
export { tooManyFailures } from './limit-check.ts';
export {
  type BearerAuthOptions,
  type CheckParts,
  aFunction,
  COMMON_OPTIONS,
  failedCredentialsBy,
  type OpenedStore,
  partsOf,
  permissionOptions,
} from './bearer-options.ts';
export {
  admitKey,
  badRequest,
  parseJson,
  readBody,
  readForm,
  readJson,
  readQuery,
  type PageRefusal,
  pageRefusal,
} from './request-body.ts';
export type { IntrospectionMode } from './graphql-errors.ts';
export type { GraphQLPipeline } from './graphql-pipeline.ts';
export { HonoRequest, honoHandler } from './hono-request.ts';
export { Issuer, PROTECTED_RESOURCE } from './issuer.ts';
export {
  addHealthChecks,
  addIntrospection,
  failedForm,
  isOldHealthCheck,
  type NamedCommands,
  OWN_COMMANDS,
  readToken,
} from './plain-endpoints.ts';
export { ClientAddresses, isLoopbackHost, readScheme, saidScheme, type Scheme } from './client-address.ts';
export { memoized } from './memoized.ts';
export {
  headerValue,
  headerValues,
  HonoHead,
  isDecodable,
  NodeHead,
  originOf,
  type Received,
  type RequestTo,
  requestIdIn,
  requestTo,
  type ServedRequest,
} from './received.ts';
export { notesOf, RequestDetails } from './request-notes.ts';
export { atPeriodEnd, FailureLog, type RefusalLog } from './refusal-log.ts';
export {
  type CorsOptions,
  answering,
  Cors,
  corsBy,
  endUnread,
  type ErrorReply,
  errorReply,
  headersOf,
  internalError,
  JSON_RESPONSE,
  jsonReply,
  type RateLimitFields,
  type Reply,
  REPLY_HEADERS,
  RequestRefused,
  respond,
  send,
  statusOf,
  unavailable,
  withFields,
} from './replies.ts';
export {
  type AllowedRequest,
  type CheckedRequest,
  type CheckRequestOptions,
  type PlainRequest,
  type RefusedRequest,
  RequestChecker,
  type RequestCheck,
} from './request-check.ts';
export { listen, listenerOf, type ListenOptions, type RunningServer } from './listen.ts';
export {
  type ConnectionHandler,
  type RequestHandler,
  serveRequests,
  type ServerOptions,
  type StartedServer,
  type ServerLimits,
} from './server.ts';
export { shortcutOf } from './shortcut.ts';
export { affordableConnections } from './connections.ts';
export { type Endpoint, endpointOf, ENDPOINTS } from './endpoints.ts';
export { REQUEST_ID } from './request-notes.ts';
export { notingFor, type RequestWatcher, type UnreadRequest, type WatchedRequest } from './watched-request.ts';
