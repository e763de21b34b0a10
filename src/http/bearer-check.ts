import type { RefusalReason } from '../keys/authentication/authenticate.ts';
import type { VerifiedKey } from '../keys/authentication/verified-keys.ts';
import type { Principal } from '../keys/authorization/principal.ts';
import { BEARER_ALONE } from '../keys/credential-places.ts';
import { sourceOf } from '../keys/networks.ts';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import { listOf } from '../keys/text.ts';
import { digestSecret, prefixOf } from '../keys/secret/secret.ts';
import type { AttemptCounter } from '../limits/attempt-counter.ts';
import {
  type BearerAuthOptions,
  checkBearerOptions,
  type CheckParts,
  partsOf,
  type RequiredPermissions,
} from './bearer-options.ts';
import { Challenge, type Problem } from './challenge.ts';
import { ClientAddresses, type Received } from './client-address.ts';
import { CredentialReader, type Credentials } from './credentials.ts';
import type { FailureLog } from './failure-log.ts';
import { type Held, LimitCheck, tooManyFailures } from './limit-check.ts';
import { type RateLimitFields, withFields } from './rate-limit-fields.ts';
import { codeOf, errorReply, type Reply, unavailable } from './replies.ts';
import type { RequestDetails } from './request-notes.ts';
import { RequestObserver, type Told } from './request-observer.ts';

/** The codes of refusals, by their status. */
const CODES = { 400: 'INVALID_REQUEST', 401: 'UNAUTHENTICATED', 403: 'FORBIDDEN' } as const;

/** A request that was let in: who makes it, and by which token. */
export interface Admitted {
  /** With an observer of this request. */
  readonly principal: Principal;
  /** As it was authenticated. */
  readonly authenticated: Principal;
  /** Undefined for somebody who has shown it before: see `enterBy`. */
  readonly token: string | undefined;
  readonly digest: string;
  /** When it was counted as a use of the key, in milliseconds since 1970. */
  readonly usedAt: number;
  /** Headers of the reply, whatever it is, that tell of the key's limits; undefined if it has none. */
  readonly fields?: RateLimitFields | undefined;
  readonly required: Requirement | undefined;
}

/** What is known of a request whose key was accepted. */
type Known = Pick<Admitted, 'token' | 'digest' | 'fields' | 'required'>;
type Accepted = Pick<VerifiedKey, 'principal'>;

/** What a key must be allowed to: all of these permissions, or one of them where that is enough. */
export interface Requirement {
  readonly items: readonly (readonly [permission: Permission, resource: string, action: Action])[];
  readonly isEnough: boolean;
}

/** What is required by options that were checked; undefined if any valid key is accepted. */
export function requirementOf({ permission, all, any }: RequiredPermissions): Requirement | undefined {
  const permissions = permission === undefined ? (all ?? any) : [permission];
  if (!permissions) return undefined;
  return { items: permissions.map((each) => [each, ...splitPermission(each)]), isEnough: any !== undefined };
}

/** The permissions that a principal lacks; undefined if it lacks none, and then they count as used. */
function missingFrom(principal: Principal, { items, isEnough }: Requirement): Permission[] | undefined {
  const { access, observer } = principal;
  const held = items.filter(([, resource, action]) => access.has(resource, action));
  if (isEnough ? held.length === 0 : held.length < items.length)
    return items.filter((item) => !held.includes(item)).map(([permission]) => permission);
  for (const [permission] of isEnough ? held.slice(0, 1) : held) observer?.used(permission);
  return undefined;
}

/** Who makes a request, or the reply to one that must be refused. */
export type Admission = Admitted | { readonly refusal: Reply };

/** Notes who was let in, or refused, and that this is done. */
function withDetails(
  details: RequestDetails,
  admission: Admission | Promise<Admission>,
  keyFrom?: 'cache' | 'store',
): Admission | Promise<Admission> {
  const note = (settled: Admission): Admission => {
    details.keyFrom = keyFrom;
    if ('principal' in settled) details.prefix = prefixOf(settled.principal.apiKey.publicId);
    else details.code = codeOf(settled.refusal);
    details.ended('authenticate');
    return settled;
  };
  return admission instanceof Promise ? admission.then(note) : note(admission);
}

/** Checks the API keys of requests (RFC 6750, RFC 7617). */
export class BearerCheck {
  readonly #keys: BearerAuthOptions['keys'];
  readonly #required: Requirement | undefined;
  readonly #reader: CredentialReader;
  readonly #challenge: Challenge;
  readonly #failures: FailureLog;
  readonly #failed: AttemptCounter | undefined;
  readonly #told: Told;
  readonly #limits: LimitCheck;

  /** A check with logs of its own, by options of others. @throws KeysError OPTION_INVALID */
  static of(options: BearerAuthOptions): BearerCheck {
    checkBearerOptions(options);
    return new BearerCheck(options, partsOf(options));
  }

  /** @throws RangeError if a place for credentials or a network is invalid */
  constructor(options: BearerAuthOptions, { refusals, failures, failedCredentials }: CheckParts) {
    const { keys, realm = 'svc-api', credentials = BEARER_ALONE, trust } = options;
    this.#keys = keys;
    this.#required = requirementOf(options);
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

  /**
   * Checks a request that has just arrived. If it is within the limits of its key, it counts as a use of that.
   * @param required what it requires, if that is not the same for all
   */
  enter(request: Received, required = this.#required): Admission | Promise<Admission> {
    const credentials = this.#reader.read(request);
    if (credentials.kind !== 'token') {
      const refused = this.#refuseUnread(credentials);
      return request.notes?.details ? withDetails(request.notes.details, refused) : refused;
    }
    const { token } = credentials;
    return this.#enter(request, { token, digest: digestSecret(token), required });
  }

  /** Checks a request like `enter`, of somebody who has shown a token with this digest before. */
  enterBy(request: Received, digest: string): Admission | Promise<Admission> {
    return this.#enter(request, { token: undefined, digest, required: this.#required });
  }

  #enter(request: Received, known: Known): Admission | Promise<Admission> {
    const { authenticator } = this.#keys;
    const verified = authenticator.findVerified(known.digest);
    if (verified) authenticator.counts.remembered += 1;
    const admission = verified
      ? this.#letIn(request, known, verified)
      : this.#ask(request, known, (accepted) => this.#letIn(request, known, accepted));
    const details = request.notes?.details;
    return details ? withDetails(details, admission, verified ? 'cache' : 'store') : admission;
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
      : this.#ask(request, admitted, (accepted) => this.#letStay(request, admitted, accepted), admitted.usedAt);
  }

  async #ask(
    request: Received,
    { token, digest }: Known,
    settle: (accepted: Accepted) => Admission | Promise<Admission>,
    usedAt?: number,
  ): Promise<Admission> {
    const { address } = this.#told.clients.of(request);
    const { notes } = request;
    const askedAt = performance.now();
    let result;
    try {
      const { authenticator } = this.#keys;
      result = await (token === undefined
        ? authenticator.confirmDigest(digest, address, usedAt)
        : authenticator.confirm(token, address, usedAt));
    } catch (error) {
      this.#failures.add(error, notes?.id);
      return { refusal: unavailable() };
    } finally {
      notes?.noteStoreTime(askedAt, performance.now());
    }
    if ('principal' in result) return settle(result);
    const prefix = result.publicId === undefined ? undefined : prefixOf(result.publicId);
    return this.#refuseKey(request, result.refused, prefix, address);
  }

  #letIn(request: Received, known: Known, accepted: Accepted): Admission | Promise<Admission> {
    const { principal } = accepted;
    const { notes } = request;
    if (notes) notes.keyId = principal.apiKey.id;
    if (!principal.restrictions) return this.#use(request, known, accepted);
    const settle = (held: Held): Admission => {
      if (held === 'gone')
        return this.#refuseKey(
          request,
          'unknown',
          prefixOf(principal.apiKey.publicId),
          this.#told.clients.of(request).address,
        );
      return 'refusal' in held ? held : this.#use(request, { ...known, fields: held.fields }, accepted);
    };
    const held = this.#limits.enter(principal, principal.restrictions, request);
    if (!(held instanceof Promise)) return settle(held);
    // While the store was asked for requests within the limits, the key may have changed.
    return held.then(settle).then((admission) => ('refusal' in admission ? admission : this.again(request, admission)));
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

  #admit(request: Received, known: Known, authenticated: Principal, usedAt: number): Admission {
    const { token, digest, fields, required } = known;
    const observer = new RequestObserver(authenticated, this.#told, request, usedAt);
    const { apiKey, chain, access, secret } = authenticated;
    const principal: Principal = { apiKey, chain, access, secret, observer };
    const missing = required && missingFrom(principal, required);
    if (!missing) return { principal, authenticated, token, digest, usedAt, fields, required };
    observer.lacked(missing);
    return { refusal: withFields(this.lacking(missing, required.isEnough ? 'or' : 'and'), fields) };
  }

  /** The header that tells a client how to send a key. */
  get challenge(): Readonly<Record<string, string>> {
    return { ...this.#challenge.headers() };
  }

  /** The reply to a key that lacks permissions. */
  lacking(missing: readonly Permission[], word = 'and'): Reply {
    const scope = `, scope="${missing.join(' ')}"`;
    return this.#refuse(403, `This key lacks ${listOf(missing, word)}.`, 'insufficient_scope', scope).refusal;
  }

  /** Refuses a key that is not valid, or, after too many of those from one address, says so instead. */
  #refuseKey(
    request: Received,
    reason: RefusalReason,
    prefix: string | undefined,
    address: string | undefined,
  ): { refusal: Reply } {
    this.#told.refusals.add('key refused', { reason, prefix, address }, request.notes);
    const wait = address === undefined ? undefined : this.#failed?.add(sourceOf(address));
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
