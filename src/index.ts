export { loadConfig } from './config/load-config.ts';
export type { Config } from './config/config.ts';
export { bearerAuth, type BearerEnv, listen, type ListenOptions, type RunningServer } from './http/index.ts';
export type {
  BearerAuthOptions,
  CheckedRequest,
  CheckRequestOptions,
  PlainRequest,
  RefusedRequest,
} from './http/index.ts';
export type { ServiceApp } from './http/app.ts';
export { isKeysError, KeysError } from './keys/basics/index.ts';
export { type Caller as Principal, OPERATOR } from './keys/authorization/index.ts';
export type { ApiKey, KeyChange, NewKey, RotationRequest } from './keys/key/index.ts';
export type { Permission } from './keys/permissions/index.ts';
export type { CreatedKey, Page, PageQuery, RotatedKey } from './keys/service/index.ts';
export { type Log, openLog } from './log.ts';
export { createApp, type CreateAppOptions } from './service/create-app.ts';
export { type Actor, type OpenKeys, openKeys } from './service/library-keys.ts';
export type { OpenKeysOptions } from './service/open-keys.ts';
export { keysOf, type SchemaHook } from './cli/host.ts';

// The types of arguments and results, so that programs can name them.
export type { ServerSettings } from './config/config.ts';
export type { LoadConfigOptions } from './config/load-config.ts';
export type { Resolvers, SchemaExtension } from './graphql/index.ts';
export type { CertificateFiles } from './http/certificate.ts';
export type {
  AllowedRequest,
  CorsOptions,
  RequestCheck,
  RequestWatcher,
  ServerLimits,
  StartedServer,
  UnreadRequest,
  WatchedRequest,
} from './http/index.ts';
export type { ErrorCode, Issue, Limit, LimitUnit, Networks } from './keys/basics/index.ts';
export type { ChangedKey, ConfusableName, Issued, IssuedKind, KeyRotation, UpdatedKey } from './keys/changes/index.ts';
export type { ExpiryRequest, Rotation } from './keys/key/index.ts';
export type { CatalogAdditions, Grant, HostResource, PolicyRules, Role } from './keys/permissions/index.ts';
export type { Grants } from './keys/repository/index.ts';
export type { CredentialPlace } from './keys/secret/index.ts';
export type { LogLevel, OpenLog } from './log.ts';
// The names that features add, and their fields of `Config`.
export * from './features/library.ts';
// oxlint-disable-next-line unicorn/require-module-specifiers
export type {} from './features/index.ts';

/**
 * The actions of an installation, for the types of permissions. A program declares its own.
 * @example
 * declare module 'svc-api' { interface OwnActions { PUBLISH: true } }
 */
// oxlint-disable-next-line typescript/no-empty-object-type
export interface OwnActions {}
type Declared = OwnActions;
declare module './keys/permissions/catalog.ts' {
  // oxlint-disable-next-line typescript/no-empty-object-type
  interface OwnActions extends Declared {}
}
