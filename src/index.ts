export type { Config, ServerSettings } from './config/config.ts';
export { loadConfig, type LoadConfigOptions } from './config/load-config.ts';
export { createApp, type CreateAppOptions } from './service/create-app.ts';
export type { BudgetLimits, GraphQLContext, ParsedTypeDefs, Resolvers, SchemaExtension } from './graphql/index.ts';
export {
  bearerAuth,
  type BearerAuthOptions,
  type BearerEnv,
  type ClientAddress,
  type ClientAddresses,
  type ConnectionLimits,
  type CorsOptions,
  type Endpoint,
  type FailureLog,
  type HeaderValues,
  type IntrospectionMode,
  listen,
  type ListenOptions,
  type NamedOperation,
  type NotedRequest,
  type Received,
  type RefusalLog,
  type Refused,
  type RequestDetails,
  type RequestNotes,
  type RequestWatcher,
  type RequiredPermissions,
  type RunningServer,
  type ServerLimits,
  type ServerOptions,
  type Span,
  type StartedServer,
  type UnreadLimits,
  type UnreadRequest,
  type WatchedRequest,
} from './http/index.ts';
export type { ServiceApp } from './http/app.ts';
export type {
  AllowedRequest,
  CheckedRequest,
  CheckRequestOptions,
  PlainRequest,
  RefusedRequest,
  RequestCheck,
} from './http/request-check.ts';
export type { CertificateFiles } from './http/certificate.ts';
export type { ListenAddress } from './http/listen-address.ts';
export type {
  AppliedKeys,
  ApplyOptions,
  DeclarationError,
  Declarations,
  DeclaredKey,
  Plan,
} from './keys/apply/index.ts';
export type {
  AuditAction,
  AuditActor,
  AuditDraft,
  AuditEntry,
  AuditPosition,
  AuditRequest,
  AuditValues,
  AuditVerification,
  KeyComparison,
  KeyDifference,
  PrunedEntries,
} from './keys/audit/index.ts';
export {
  type DocumentIssue,
  type DocumentPath,
  type ErrorCode,
  isKeysError,
  type Issue,
  KeysError,
  type Limit,
  type LimitParts,
  type LimitUnit,
  type NameTakenError,
  type Networks,
  type ProgressReport,
  type Source,
  type ValidationError,
} from './keys/basics/index.ts';
export type {
  Authentication,
  Authenticator,
  CheckCounts,
  Identification,
  RefusalReason,
  SecretStatus,
  Sessions,
  VerifiedKey,
} from './keys/authentication/index.ts';
export {
  type AccessDecision,
  type AccessObserver,
  type Actor,
  type AncestorLimit,
  type AppliedLimit,
  type AuditAccess,
  type Chain,
  type Descendants,
  type ForbiddenError,
  OPERATOR,
  type Principal,
  type Restrictions,
} from './keys/authorization/index.ts';
export type {
  ChangedKey,
  ConfusableName,
  Containing,
  Containment,
  Containments,
  EndBounds,
  PermittedChanges,
  Grantable,
  Issued,
  IssuedKind,
  KeyChangeKind,
  KeyPreview,
  KeyRotation,
  Leak,
  Leaks,
  NewSecret,
  PossibleChange,
  Refusal,
  SecretDelivery,
  UnusedKeys,
  UpdatedKey,
} from './keys/changes/index.ts';
export type {
  ApiKey,
  EffectKind,
  ExpiryRequest,
  GivenFields,
  KeyChange,
  NewKey,
  Outcome,
  OutcomeCounts,
  Period,
  PeriodUsage,
  Rotation,
  RotationRequest,
  Status,
  Usage,
  UsageByPeriod,
  UsageRange,
  UsageRequest,
  UsageTotals,
  UsedGrant,
} from './keys/key/index.ts';
export type {
  ApprovedConsent,
  AskedConsent,
  Client,
  Consent,
  ConsentChoice,
  Ended,
  Handle,
  KeyToEnd,
  NewConsentRequest,
  Polled,
  Redeemed,
  Redemption,
  RefusedEnd,
  RefusedRedemption,
} from './keys/consent/index.ts';
export type {
  Approver,
  ConsentApproval,
  ConsentFlow,
  ConsentRedirect,
  ConsentRequest,
  ConsentStatus,
  FormOutcome,
  Grants,
  NotificationReport,
  KeyCounts,
  SchemaDifference,
  Session,
  StoreKind,
} from './keys/repository/index.ts';
export type { NoticeSettings, NoticeType } from './keys/notices/index.ts';
export type { CredentialPlace } from './keys/secret/index.ts';
export type {
  CreatedKey,
  Health,
  KeyManagement,
  KeyQueries,
  KeysService,
  Page,
  PageQuery,
  RotatedKey,
  StoreHealth,
} from './keys/service/index.ts';
export type { Answer, AttemptCounter, Decision, Limited, Limiter, Standing } from './limits/index.ts';
export {
  type Action,
  type Catalog,
  type CatalogAdditions,
  type ConsentMode,
  type Grant,
  type HostResource,
  type Permission,
  PermissionSet,
  type Policy,
  type PolicyRules,
  type ResourceActions,
  type Role,
} from './keys/permissions/index.ts';
export type {
  ExportedKey,
  ExportedPage,
  ExportOptions,
  ImportKeysOptions,
  ImportProblem,
  ImportReport,
  ImportWarning,
  LineReport,
  Transfer,
} from './keys/transfer/index.ts';
export { type FinishedLines, type Log, type LogLevel, type OpenLog, openLog } from './log.ts';
export { type OpenKeys, openKeys, type OpenKeysOptions } from './service/open-keys.ts';
export type { SchemaHook, SvcApiHooks } from './cli/host.ts';
export type { Allow, Route } from './routes/index.ts';
export { startTelemetry, type Telemetry, type TelemetryOptions } from './telemetry/start-telemetry.ts';
export type { OpenStoreOptions } from './store/open.ts';
export type { StoreOperation, StoreTimer } from './store/index.ts';
