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
export { type Actor, openEdge, type OpenKeys, openKeys } from './service/library-keys.ts';
export type { OpenKeysOptions } from './service/open-keys.ts';
export { keysOf, type SchemaHook } from './cli/host.ts';
export { startTelemetry } from './telemetry/start-telemetry.ts';
