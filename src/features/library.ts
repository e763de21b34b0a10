// Names of features that the library has: a line for each file.
export type { Client } from './consent/clients.ts';
export type { ConsentMode } from './consent/modes.ts';
export type { RefreshSettings } from './consent/refresh.ts';
export { openEdge, type OpenEdgeOptions } from './edge/library.ts';
export type { ClaimCondition, FederationRule } from './federation/federation-rule.ts';
export type { TokenIssuer } from './federation/token-issuer.ts';
export type { FeedByNats, NatsFeedOptions } from './nats/settings.ts';
export type { Notice, NoticeSettings, NoticeType } from './notices/index.ts';
export type { GrantsByGroup, PeopleSettings, Person, SignInProvider, SignInProxy } from './people/people.ts';
export type { Allow, McpPatterns, Route, SentCredential, Upstream, UpstreamAddress } from './routes/index.ts';
export { startTelemetry } from './telemetry/start-telemetry.ts';
export type { Telemetry, TelemetryOptions } from './telemetry/start-telemetry.ts';
