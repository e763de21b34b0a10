import type { RefusalReason } from '../keys/authentication/authenticate.ts';
import type { VerifiedKey } from '../keys/authentication/verified-keys.ts';
import { type Principal, uses } from '../keys/authorization/principal.ts';
import { BEARER_ALONE, type CredentialPlace } from '../keys/credential-places.ts';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import { listOf } from '../keys/text.ts';
import { digestSecret, prefixOf } from '../keys/secret/secret.ts';
import type { KeysService } from '../keys/service.ts';
import { FailedCredentials } from '../limits/failed-credentials.ts';
import type { Limited } from '../limits/limiter.ts';
import { type Log, NO_LOG } from '../log.ts';
import { Challenge, type Problem } from './challenge.ts';
import { ClientAddresses, networkOf, type Received } from './client-address.ts';
import { CredentialReader, type Credentials } from './credentials.ts';
import { FailureLog } from './failure-log.ts';
import { RefusalLog } from './refusal-log.ts';
import { type Held, LimitCheck, tooManyFailures } from './limit-check.ts';
import { type RateLimitFields, withFields } from './rate-limit-fields.ts';
import { errorReply, type Reply, unavailable } from './replies.ts';
import { RequestObserver, type Told } from './request-observer.ts';

/** Which keys are accepted. */
export interface BearerAuthOptions {
  /** The service of an open key store, see `openKeys`. */
  keys: Pick<KeysService, 'authenticator'> & Limited;
  /** The permission that every request requires, such as `DOCKER:READ_ANY`. Default: any valid key is accepted. */
  permission?: Permission;
  /** The realm in `WWW-Authenticate`. Default: `svc-api`. */
  realm?: string;
  /** Where a key may stand in a request. Default: `['bearer']`. */
  credentials?: readonly CredentialPlace[];
  /**
   * Networks of proxies whose `X-Forwarded-For` and `Forwarded` headers are believed, such as `10.0.0.0/8`: logs have
   * the address that they give. Default: this machine, `['127.0.0.0/8', '::1/128']`.
   */
  trust?: readonly string[];
  /**
   * How many requests with a key that is not valid one address, or one /64 of IPv6, may make, such as `20/m`, which is
   * the default; false for any number. Beyond that they are answered 429. A valid key is always let in.
   */
  failedCredentials?: string | false;
  /**
   * Logs refused keys, missing permissions and failures of the store, in sums: each kind at once, its repetitions every
   * minute and when the process ends, unless a signal kills it. Default: nothing is logged.
   */
  log?: Log;
}

/** The codes of refusals, by their status. */
const CODES = { 400: 'INVALID_REQUEST', 401: 'UNAUTHENTICATED', 403: 'FORBIDDEN' } as const;

/** What the checks of one service share. */
export interface CheckParts {
  refusals: RefusalLog;
  failures: FailureLog;
  /** Undefined if there is no limit. */
  failedCredentials: FailedCredentials | undefined;
}

/** A request that was let in: who makes it, and by which token. */
export interface Admitted {
  /** With an observer of this request. */
  readonly principal: Principal;
  /** As it was authenticated. */
  readonly authenticated: Principal;
  readonly token: string;
  readonly digest: string;
  /** When it was counted as a use of the key, in milliseconds since 1970. */
  readonly usedAt: number;
  /** Headers of the reply, whatever it is, that tell of the key's limits; undefined if it has none. */
  readonly fields?: RateLimitFields | undefined;
}

/** What is known of a request whose key was accepted. */
type Known = Pick<Admitted, 'token' | 'digest' | 'fields'>;
type Accepted = Pick<VerifiedKey, 'principal'>;

/** Who makes a request, or the reply to one that must be refused. */
export type Admission = Admitted | { readonly refusal: Reply };

/** The parts of checks, which may go on from those of others. @throws RangeError if a limit is invalid */
export function partsOf(
  { log = NO_LOG, failedCredentials }: Pick<BearerAuthOptions, 'log' | 'failedCredentials'>,
  earlier?: CheckParts,
): CheckParts {
  return {
    refusals: earlier?.refusals ?? new RefusalLog(log),
    failures: earlier?.failures ?? new FailureLog(log),
    failedCredentials: FailedCredentials.of(failedCredentials, earlier?.failedCredentials),
  };
}

/** Checks the API keys of requests (RFC 6750, RFC 7617). */
export class BearerCheck {
  readonly #keys: BearerAuthOptions['keys'];
  readonly #permission: Permission | undefined;
  readonly #required: [string, Action] | undefined;
  readonly #reader: CredentialReader;
  readonly #challenge: Challenge;
  readonly #failures: FailureLog;
  readonly #failed: FailedCredentials | undefined;
  readonly #told: Told;
  readonly #limits: LimitCheck;

  /** A check with logs of its own. @throws RangeError if a place for credentials, a network or a limit is invalid */
  static of(options: BearerAuthOptions): BearerCheck {
    return new BearerCheck(options, partsOf(options));
  }

  /** @throws RangeError if a place for credentials or a network is invalid */
  constructor(options: BearerAuthOptions, { refusals, failures, failedCredentials }: CheckParts) {
    const { keys, permission, realm = 'svc-api', credentials = BEARER_ALONE, trust } = options;
    this.#keys = keys;
    this.#permission = permission;
    this.#required = permission && splitPermission(permission);
    this.#reader = new CredentialReader(credentials);
    this.#challenge = new Challenge(this.#reader.places, realm);
    this.#failures = failures;
    this.#failed = failedCredentials;
    this.#told = {
      refusals,
      clients: new ClientAddresses(trust),
      noteForbidden: (...forbidden) => keys.authenticator.noteForbidden(...forbidden),
    };
    this.#limits = new LimitCheck({
      limiter: keys.limiter,
      told: this.#told,
      failures,
      noteRefusal: (...refused) => keys.authenticator.noteRefusal(...refused),
    });
  }

  /** Checks a request that has just arrived. If it is within the limits of its key, it counts as a use of that. */
  enter(request: Received): Admission | Promise<Admission> {
    const credentials = this.#reader.read(request);
    if (credentials.kind !== 'token') return this.#refuseUnread(credentials);
    const { token } = credentials;
    const known = { token, digest: digestSecret(token) };
    const verified = this.#keys.authenticator.findVerified(known.digest);
    return verified
      ? this.#letIn(request, known, verified)
      : this.#ask(request, token, (accepted) => this.#letIn(request, known, accepted));
  }

  /**
   * Checks a request again that was let in: its key may have been deleted while the body arrived. Counts as no further
   * use.
   */
  again(request: Received, admitted: Admitted): Admission | Promise<Admission> {
    const verified = this.#keys.authenticator.findVerified(admitted.digest);
    if (verified?.principal === admitted.authenticated) return admitted;
    return verified
      ? this.#letStay(request, admitted, verified)
      : this.#ask(request, admitted.token, (accepted) => this.#letStay(request, admitted, accepted), admitted.usedAt);
  }

  async #ask(
    request: Received,
    token: string,
    settle: (accepted: Accepted) => Admission | Promise<Admission>,
    usedAt?: number,
  ): Promise<Admission> {
    const { address } = this.#told.clients.of(request);
    let result;
    try {
      result = await this.#keys.authenticator.confirm(token, address, usedAt);
    } catch (error) {
      this.#failures.add(error);
      return { refusal: unavailable() };
    }
    if ('principal' in result) return settle(result);
    const prefix = result.publicId === undefined ? undefined : prefixOf(result.publicId);
    return this.#refuseKey(result.refused, prefix, address);
  }

  #letIn(request: Received, known: Known, accepted: Accepted): Admission | Promise<Admission> {
    const { principal } = accepted;
    if (!principal.restrictions) return this.#use(request, known, accepted);
    const settle = (held: Held): Admission => {
      if (held === 'gone')
        return this.#refuseKey('unknown', prefixOf(principal.key.publicId), this.#told.clients.of(request).address);
      return 'refusal' in held ? held : this.#use(request, { ...known, fields: held.fields }, accepted);
    };
    const held = this.#limits.enter(principal, principal.restrictions, request);
    return held instanceof Promise ? held.then(settle) : settle(held);
  }

  #letStay(request: Received, admitted: Admitted, { principal }: Accepted): Admission {
    const { restrictions } = principal;
    const refusal = restrictions && this.#limits.refuseAddress(principal, restrictions, request, admitted.usedAt);
    return refusal ? { refusal } : this.#admit(request, admitted, principal, admitted.usedAt);
  }

  #use(request: Received, known: Known, accepted: Accepted): Admission {
    const usedAt = this.#keys.authenticator.countUse(accepted);
    return this.#admit(request, known, accepted.principal, usedAt);
  }

  #admit(request: Received, { token, digest, fields }: Known, authenticated: Principal, usedAt: number): Admission {
    const observer = new RequestObserver(authenticated, this.#told, request, usedAt);
    const { key, chain, access, secret } = authenticated;
    const principal: Principal = { key, chain, access, secret, observer };
    if (!this.#required || uses(principal, ...this.#required))
      return { principal, authenticated, token, digest, usedAt, fields };
    const permission = this.#permission!;
    observer.lacked([permission]);
    return { refusal: withFields(this.lacking([permission]), fields) };
  }

  /** The header that tells a client how to send a key. */
  get challenge(): Readonly<Record<string, string>> {
    return { ...this.#challenge.headers() };
  }

  /** The reply to a key that lacks permissions. */
  lacking(missing: readonly Permission[]): Reply {
    const scope = `, scope="${missing.join(' ')}"`;
    return this.#refuse(403, `This key lacks ${listOf(missing)}.`, 'insufficient_scope', scope).refusal;
  }

  /** Refuses a key that is not valid, or, after too many of those from one address, says so instead. */
  #refuseKey(reason: RefusalReason, prefix: string | undefined, address: string | undefined): { refusal: Reply } {
    this.#told.refusals.add('key refused', { reason, prefix, address });
    const wait = address === undefined ? undefined : this.#failed?.add(networkOf(address));
    if (wait !== undefined) return { refusal: tooManyFailures(wait) };
    return this.#refuse(401, 'The API key is not valid.', 'invalid_token');
  }

  /** Refuses a request that has no credentials, or none that can be told. */
  #refuseUnread({ kind, headers }: Exclude<Credentials, { kind: 'token' }>): { refusal: Reply } {
    const challenge = this.#challenge;
    if (kind === 'none') return this.#refuse(401, challenge.missing);
    const message = kind === 'several' ? challenge.several(headers) : challenge.malformed(headers[0]!);
    return this.#refuse(400, message, 'invalid_request');
  }

  #refuse(status: 400 | 401 | 403, message: string, problem?: Problem, more?: string): { refusal: Reply } {
    return { refusal: errorReply(status, CODES[status], message, this.#challenge.headers(problem, more)) };
  }
}
