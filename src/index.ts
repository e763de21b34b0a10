export type { Config, ServerSettings } from './config/config.ts';
export { loadConfig, type LoadConfigOptions } from './config/load-config.ts';
export { createApp, type CreateAppOptions } from './service/create-app.ts';
export type { GraphQLContext } from './graphql/context.ts';
export type { BudgetLimits } from './graphql/execution/index.ts';
export type { ParsedTypeDefs, Resolvers, SchemaExtension } from './graphql/extension.ts';
export type { IntrospectionMode } from './http/graphql-errors.ts';
export type { ServiceApp } from './http/app.ts';
export { bearerAuth, type BearerEnv } from './http/bearer-auth.ts';
export type { BearerAuthOptions, RequiredPermissions } from './http/bearer-options.ts';
export type {
  AllowedRequest,
  CheckedRequest,
  CheckRequestOptions,
  PlainRequest,
  RefusedRequest,
  RequestCheck,
} from './http/request-check.ts';
export type { HeaderValues } from './http/credentials.ts';
export type {
  ClientAddress,
  ClientAddresses,
  NamedOperation,
  Received,
  RequestDetails,
  RequestNotes,
} from './http/received.ts';
export type { CertificateFiles } from './http/certificate.ts';
export type { CorsOptions } from './http/cors.ts';
export type { FailureLog, RefusalLog, Refused } from './http/refusal-log.ts';
export type { ConnectionLimits, UnreadLimits } from './http/connections.ts';
export type { ListenAddress } from './http/listen-address.ts';
export { listen, type ListenOptions, type RunningServer } from './http/server.ts';
export type { ServerLimits, ServerOptions, StartedServer } from './http/serve-requests.ts';
export type {
  Endpoint,
  NotedRequest,
  RequestWatcher,
  Span,
  UnreadRequest,
  WatchedRequest,
} from './http/watched-request.ts';
export type { AppliedKeys } from './keys/apply/apply.ts';
export type { DeclarationError, DeclaredKey, Plan } from './keys/apply/declaration.ts';
export type {
  AuditAction,
  AuditActor,
  AuditDraft,
  AuditEntry,
  AuditPosition,
  AuditValues,
} from './keys/audit/audit-entry.ts';
export type { AuditRequest } from './keys/audit/audit-log.ts';
export type { KeyComparison, KeyDifference } from './keys/audit/compare.ts';
export type { PrunedEntries } from './keys/audit/prune.ts';
export type { AuditVerification } from './keys/audit/verify.ts';
export type { ProgressReport } from './keys/progress.ts';
export type {
  Authentication,
  Authenticator,
  CheckCounts,
  Identification,
  RefusalReason,
  SecretStatus,
  VerifiedKey,
} from './keys/authentication/authenticator.ts';
export {
  type AccessObserver,
  type Actor,
  type ForbiddenError,
  OPERATOR,
  type Principal,
} from './keys/authorization/principal.ts';
export type { Containing, Containment, Issued, IssuedKind } from './keys/changes/contain.ts';
export type { EffectKind } from './keys/effect.ts';
export type { ConfusableName } from './keys/changes/confusable-names.ts';
export type { KeyPreview } from './keys/changes/create.ts';
export type { NewSecret, SecretDelivery } from './keys/changes/delivery.ts';
export type { Leak } from './keys/changes/note-leak.ts';
export type { AppliedLimit, Restrictions } from './keys/authorization/restrictions.ts';
export type { AskedConsent, NewConsentRequest } from './keys/consent/ask.ts';
export type { ApprovedConsent, Consent, Handle, Polled } from './keys/consent/consent.ts';
export type { ConsentChoice } from './keys/consent/approval.ts';
export type { Ended, KeyToEnd, RefusedEnd } from './keys/consent/revoke.ts';
export type { FormOutcome, Session } from './keys/session.ts';
export type { NoticeType } from './keys/notices/notice.ts';
export type { NoticeSettings } from './keys/notices/settings.ts';
export type { Sessions } from './keys/sessions.ts';
export type { Redeemed, Redemption, RefusedRedemption } from './keys/consent/redeem.ts';
export type { Client } from './keys/requests/clients.ts';
export type {
  Approver,
  ConsentApproval,
  ConsentFlow,
  ConsentRedirect,
  ConsentRequest,
  ConsentStatus,
  Grants,
} from './keys/requests/consent-request.ts';
export type { Descendants } from './keys/authorization/descendants.ts';
export type { AncestorLimit, Chain } from './keys/authorization/chain.ts';
export type { AccessDecision } from './keys/authorization/explain.ts';
export type { EndBounds, Grantable } from './keys/changes/grantable.ts';
export type { KeyChangeKind, PossibleChange, Refusal } from './keys/changes/possible-changes.ts';
export type { KeyRotation } from './keys/changes/rotate.ts';
export type { ChangedKey } from './keys/changes/transaction.ts';
export type { UpdatedKey } from './keys/changes/update.ts';
export type { DocumentIssue, DocumentPath } from './keys/document.ts';
export {
  type ErrorCode,
  type Issue,
  isKeysError,
  KeysError,
  type NameTakenError,
  type ValidationError,
} from './keys/errors.ts';
export type { ApiKey, GivenFields, KeyChange, NewKey } from './keys/key/api-key.ts';
export type { CredentialPlace } from './keys/credential-places.ts';
export type { ExpiryRequest } from './keys/key/expiry.ts';
export type { Rotation, RotationRequest } from './keys/key/rotation.ts';
export type { Status } from './keys/key/status.ts';
export type { UsageTotals, UsedGrant } from './keys/key/usage.ts';
export type { Outcome, OutcomeCounts } from './keys/usage/outcomes.ts';
export type { Period, PeriodUsage, UsageByPeriod, UsageRange } from './keys/usage/periods.ts';
export type { UsageRequest } from './keys/usage/usage-request.ts';
export type { Health } from './keys/health.ts';
export type { Limit, LimitParts, LimitUnit } from './keys/limit.ts';
export type { Answer, Decision, Limited, Limiter, Standing } from './limits/limiter.ts';
export type { AttemptCounter } from './limits/attempt-counter.ts';
export type { Page, PageQuery } from './keys/list.ts';
export type {
  Action,
  Catalog,
  CatalogAdditions,
  ConsentMode,
  Grant,
  HostResource,
  Permission,
  Role,
} from './keys/permissions/catalog.ts';
export type { Policy, PolicyRules } from './keys/permissions/policy.ts';
export { type ResourceActions, PermissionSet } from './keys/permissions/permission-set.ts';
export type { Networks, Source } from './keys/networks.ts';
export type { NotificationReport, KeyCounts, StoreKind } from './keys/repository.ts';
export type { SchemaDifference } from './keys/schema.ts';
export type { CreatedKey, KeyManagement, KeyQueries, RotatedKey } from './keys/management.ts';
export type { Features } from './keys/features.ts';
export type { ApplyOptions, Declarations } from './keys/apply/declarations.ts';
export type { AuditAccess } from './keys/authorization/audit-access.ts';
export type { Containments } from './keys/changes/contain.ts';
export type { PermittedChanges } from './keys/changes/permitted-changes.ts';
export type { Leaks } from './keys/changes/note-leak.ts';
export type { StoreHealth } from './keys/health.ts';
export type { Usage } from './keys/key/usage.ts';
export type { ImportKeysOptions, Transfer } from './keys/transfer/transfer.ts';
export type { UnusedKeys } from './keys/unused-keys.ts';
export type { KeysService } from './keys/service.ts';
export type { ExportedKey, ExportedPage, ExportOptions } from './keys/transfer/export.ts';
export type { ImportReport, LineReport } from './keys/transfer/import.ts';
export type { ImportProblem, ImportWarning } from './keys/transfer/read-import.ts';
export { type FinishedLines, type Log, type LogLevel, type OpenLog, openLog } from './log.ts';
export { type OpenKeys, openKeys, type OpenKeysOptions } from './service/open-keys.ts';
export type { SchemaHook, SvcApiHooks } from './cli/host.ts';
export type { Allow, Route } from './routes/router.ts';
export { startTelemetry, type Telemetry, type TelemetryOptions } from './telemetry/start-telemetry.ts';
export type { OpenStoreOptions } from './store/open.ts';
export type { StoreOperation, StoreTimer } from './store/timed-connection.ts';
