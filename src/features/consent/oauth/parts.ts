import type { Context } from 'hono';
import type {
  BearerCheck,
  ClientAddresses,
  FailureLog,
  Issuer,
  RefusalLog,
  RouteContext,
} from '../../../http/index.ts';
import type { NewSecret } from '../../../keys/changes/index.ts';
import type { Catalog } from '../../../keys/permissions/index.ts';
import type { Consent } from '../consent.ts';
import type { RefreshSettings } from '../refresh.ts';
import type { Clients } from './clients.ts';
import type { Parameters } from './oauth-error.ts';

/** An issued key, and the time of the issue in milliseconds since 1970 if that is later than its secret. */
export type GivenKey = NewSecret & { readonly more?: object; readonly at?: number };

/** A way to get a key at the token endpoint. */
export interface GrantType {
  readonly isOffered: boolean;
  /** @throws OAuthError */
  give(c: Context, form: Parameters, parts: ConsentParts): Promise<GivenKey>;
}

/** Parts that the endpoints for applications and the pages for people share. */
export interface ConsentParts {
  readonly consent: Consent;
  readonly catalog: Catalog;
  readonly clients: Clients;
  readonly refresh: RefreshSettings;
  readonly issuer: Issuer;
  /** It has `guarded` once all endpoints are added. */
  readonly places: RouteContext['places'];
  readonly addresses: ClientAddresses;
  /** Takes keys that people show in forms, wherever programs put theirs. */
  readonly check: BearerCheck;
  readonly refusals: RefusalLog;
  readonly failures: FailureLog;
  /** The ways to get a key at the token endpoint, by `grant_type`. Other features add theirs. */
  readonly grantTypes: Map<string, GrantType>;
}
