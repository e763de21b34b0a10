import type { RefusalReason, VerifiedKey } from '../keys/authentication/index.ts';
import { ONCE, type Principal, restrictionsFor } from '../keys/authorization/index.ts';
import { formatList, type OrRefusal, sourceOf } from '../keys/basics/index.ts';
import { isFor } from '../keys/key/index.ts';
import { type Permission, replacing, scopeItems } from '../keys/permissions/index.ts';
import { BEARER_ALONE, digestSecret, prefixOf } from '../keys/secret/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { Limited } from '../limits/index.ts';
import type { BearerAuthOptions, CheckParts } from './bearer-options.ts';
import { ClientAddresses } from './client-address.ts';
import { Challenge, CredentialReader, type Credentials, type Problem } from './credentials.ts';
import { LimitCheck, type LimitDecision, tooManyFailures } from './limit-check.ts';
import { addressOf, type Received, requestTo, type RequestTo } from './received.ts';
import { type ErrorReply, errorReply, type RateLimitFields, type Reply, unavailable, withFields } from './replies.ts';
import type { RequestDetails } from './request-notes.ts';
import { type CheckContext, RequestObserver } from './request-observer.ts';
import { missingFrom, type Requirement, requirementOf } from './requirement.ts';

const NOT_VALID = 'The API key is not valid.';

/** An accepted request: its principal and its token. */
export interface Admitted {
  /** With an observer of this request. */
  readonly principal: Principal;
  /** The principal as authenticated. */
  readonly authenticated: Principal;
  /** Undefined for a session, whose token was shown earlier: see `enterBy`. */
  readonly token: string | undefined;
  readonly digest: string;
  /** When it was counted as a use of the key, in milliseconds since 1970. */
  readonly usedAt: number;
  /** Headers about the key's limits for any reply; undefined if it has none. */
  readonly fields?: RateLimitFields | undefined;
  readonly required: Requirement | undefined;
}

/** Data about a request with an accepted key. */
type CheckedCredentials = Pick<Admitted, 'token' | 'digest' | 'fields' | 'required'>;
type AcceptedKey = Pick<VerifiedKey, 'principal'>;

/** The principal of a request, or the reply to a refused one. */
export type Admission = OrRefusal<Admitted, ErrorReply>;

/** Records the key of the request, or its refusal, and the end of the stage. */
function withDetails(
  details: RequestDetails,
  admission: Admission | Promise<Admission>,
  keyFrom?: 'cache' | 'store',
): Admission | Promise<Admission> {
  const note = (settled: Admission): Admission => {
    details.keyFrom = keyFrom;
    if ('principal' in settled) details.prefix = prefixOf(settled.principal.apiKey.publicId);
    else details.code = settled.refusal.error.code;
    details.ended('authenticate');
    return settled;
  };
  return admission instanceof Promise ? admission.then(note) : note(admission);
}

/** The way for a client to obtain a key (RFC 9728, section 5.1). */
export interface Discovery {
  /** The address of the protected resource's metadata. */
  readonly metadata: string;
  /** The permissions that a request needs; empty if not stated. */
  readonly scope: readonly string[];
}

/** Tells clients where to get keys for services behind a proxy. */
export interface GuardedDiscovery {
  isOwn(to: RequestTo): boolean;
  find(to: RequestTo): Discovery | undefined;
  answer(to: RequestTo): Reply | undefined;
}

/** Options of a check. */
export interface CheckOptions extends Omit<BearerAuthOptions, 'keys'> {
  keys: Pick<KeysService, 'authenticator' | 'catalog'> & Limited;
  /** The target of a request that does not know it itself, if it is certainly our own. */
  toOf?: ((request: Received) => RequestTo | undefined) | undefined;
  /** True if a request's stated target is certainly our own. Default: none is. */
  isOwn?: ((to: RequestTo) => boolean) | undefined;
  /** Finds the way to obtain a key for a request; undefined to tell clients nothing. */
  discover?: ((request: Received) => Discovery | undefined) | undefined;
}

/** Checks the API keys of requests (RFC 6750, RFC 7617). */
export class BearerCheck {
  readonly #required: Requirement | undefined;
  readonly #reader: CredentialReader;
  readonly #challenge: Challenge;
  /** Without Basic, which would make a browser ask for a password over the page. */
  readonly #quietChallenge: Challenge;
  readonly #context: CheckContext;
  readonly #limits: LimitCheck;
  readonly #toOf: (request: Received) => RequestTo | undefined;
  readonly #isOwn: CheckOptions['isOwn'];
  readonly #discover: CheckOptions['discover'];

  /** @throws RangeError if a place for credentials or a network is invalid */
  constructor(options: CheckOptions, parts: CheckParts) {
    const { keys, realm = 'svc-api', credentials = BEARER_ALONE, trust, audience } = options;
    const to = audience === undefined ? undefined : requestTo(audience);
    this.#toOf = options.toOf ?? (() => to);
    this.#isOwn = options.isOwn;
    this.#discover = options.discover;
    this.#required = requirementOf(options);
    this.#reader = new CredentialReader(credentials);
    this.#challenge = new Challenge(this.#reader.places, realm);
    const others = this.#reader.places.filter((place) => place !== 'basic');
    this.#quietChallenge = new Challenge(others, realm);
    const { authenticator, limiter } = keys;
    this.#context = { ...parts, authenticator, limiter, clients: new ClientAddresses(trust) };
    this.#limits = new LimitCheck(this.#context);
  }

  /**
   * Checks a new request. If it is within the limits of its key, it counts as a use.
   * @param required the permissions, if they differ from the default
   */
  enter(request: Received, required = this.#required): Admission | Promise<Admission> {
    const credentials = this.#reader.read(request);
    if (credentials.kind !== 'token') {
      const refused = this.#refuseUnread(request, credentials);
      return request.notes?.details ? withDetails(request.notes.details, refused) : refused;
    }
    const { token } = credentials;
    return this.#enter(request, { token, digest: digestSecret(token), required });
  }

  /** Like `enter`, for a session whose token has this digest. */
  enterBy(request: Received, digest: string): Admission | Promise<Admission> {
    return this.#enter(request, { token: undefined, digest, required: this.#required });
  }

  #enter(request: Received, known: CheckedCredentials): Admission | Promise<Admission> {
    const { authenticator } = this.#context;
    const verified = authenticator.findVerified(known.digest);
    if (verified) authenticator.counts.remembered += 1;
    const admission = verified
      ? this.#acceptKey(request, known, verified)
      : this.#ask(request, known, (accepted) => this.#acceptKey(request, known, accepted));
    const details = request.notes?.details;
    return details ? withDetails(details, admission, verified ? 'cache' : 'store') : admission;
  }

  /**
   * Checks an accepted request again: its key may have been deleted while the body arrived. Does not count as another
   * use.
   */
  again(request: Received, admitted: Admitted): Admission | Promise<Admission> {
    const verified = this.#context.authenticator.findVerified(admitted.digest);
    if (verified?.principal === admitted.authenticated) return admitted;
    return verified
      ? this.#acceptAgain(request, admitted, verified)
      : this.#ask(request, admitted, (accepted) => this.#acceptAgain(request, admitted, accepted), admitted.usedAt);
  }

  async #ask(
    request: Received,
    { token, digest }: CheckedCredentials,
    settle: (accepted: AcceptedKey) => Admission | Promise<Admission>,
    usedAt?: number,
  ): Promise<Admission> {
    const { address } = this.#context.clients.of(request);
    const { notes } = request;
    const askedAt = performance.now();
    let result;
    try {
      const { authenticator } = this.#context;
      result = await (token === undefined
        ? authenticator.confirmDigest(digest, address, usedAt)
        : authenticator.confirm(token, address, usedAt));
    } catch (error) {
      this.#context.failures.add(error, notes?.id);
      return { refusal: unavailable() };
    } finally {
      notes?.noteStoreTime(askedAt, performance.now());
    }
    if ('principal' in result) return settle(result);
    const prefix = result.publicId === undefined ? undefined : prefixOf(result.publicId);
    return this.#refuseKey(request, result.refused, prefix, address);
  }

  #acceptKey(request: Received, known: CheckedCredentials, accepted: AcceptedKey): Admission | Promise<Admission> {
    const { principal } = accepted;
    const { notes, charge = ONCE } = request;
    if (notes) notes.keyId = principal.apiKey.id;
    const { audiences = [] } = principal.restrictions ?? {};
    if (audiences.length > 0 && !request.isSubject && !this.#isFor(audiences, request))
      return this.#refuseAudience(request, principal);
    const restrictions = restrictionsFor(principal, charge);
    if (!restrictions) return this.#use(request, known, accepted);
    const settle = (held: LimitDecision): Admission => {
      if (held === 'gone') return this.#refuseGone(request, principal);
      return 'refusal' in held ? held : this.#use(request, { ...known, fields: held.fields }, accepted);
    };
    const held = this.#limits.enter(principal, restrictions, request);
    if (!(held instanceof Promise)) return settle(held);
    // The key may have changed while the store was queried for the limits.
    return held.then(settle).then((admission) => ('refusal' in admission ? admission : this.again(request, admission)));
  }

  /**
   * Counts an accepted request once its cost is known.
   * @returns the request with the headers of its answer; if the store was queried, check it again
   */
  count(request: Received, admitted: Admitted): Admission | Promise<Admission> {
    const { authenticated: principal, usedAt } = admitted;
    const restrictions = restrictionsFor(principal, request.charge ?? ONCE);
    if (!restrictions) return admitted;
    const settle = (held: LimitDecision): Admission => {
      if (held === 'gone') return this.#refuseGone(request, principal);
      return 'refusal' in held ? held : { ...admitted, fields: held.fields };
    };
    const held = this.#limits.enter(principal, restrictions, request, usedAt);
    return held instanceof Promise ? held.then(settle) : settle(held);
  }

  #acceptAgain(request: Received, admitted: Admitted, { principal }: AcceptedKey): Admission {
    const { restrictions } = principal;
    const refusal = restrictions && this.#limits.refuseAddress(principal, restrictions, request, admitted.usedAt);
    return refusal ? { refusal } : this.#admit(request, admitted, principal, admitted.usedAt);
  }

  /** True if the target of a request is within the key's audiences. */
  #isFor(audiences: readonly string[], request: Received): boolean {
    const to = request.to ? (this.#isOwn?.(request.to) ? request.to : undefined) : this.#toOf(request);
    const address = to && addressOf(to);
    return address !== undefined && audiences.every((audience) => isFor(audience, address));
  }

  /** Refuses a key for another audience like an invalid one (RFC 6750, section 3.1). */
  #refuseAudience(request: Received, principal: Principal): { refusal: ErrorReply } {
    this.#limits.noteRefused('key refused', 'audience', principal, request);
    return this.#refuse(request, 'UNAUTHENTICATED', NOT_VALID, 'invalid_token');
  }

  #use(request: Received, known: CheckedCredentials, accepted: AcceptedKey): Admission {
    const usedAt = this.#context.authenticator.countUse(accepted);
    return this.#admit(request, known, accepted.principal, usedAt);
  }

  #admit(request: Received, known: CheckedCredentials, authenticated: Principal, usedAt: number): Admission {
    const { token, digest, fields, required } = known;
    const observer = new RequestObserver(authenticated, this.#context, request, usedAt);
    const principal = authenticated.observedBy(observer);
    const missing = required && missingFrom(principal, required);
    if (!missing) return { principal, authenticated, token, digest, usedAt, fields, required };
    observer.lacked(missing);
    const word = required.isEnough ? 'or' : 'and';
    return { refusal: withFields(this.lacking(request, authenticated, missing, word), fields) };
  }

  /** True if the key of a request came by Basic authentication. */
  isByBasic(request: Received): boolean {
    return this.#reader.isByBasic(request);
  }

  /** True if a request has anything in a place for keys. */
  hasCredentials(request: Received): boolean {
    const { kind, headers } = this.#reader.read(request);
    return kind !== 'none' || headers.length > 0;
  }

  /** The challenge header with a page for people, about how programs send a key. */
  get challengeOnPages(): Readonly<Record<string, string>> {
    return { ...this.#quietChallenge.headers() };
  }

  /** The challenge header for a client. Requests for a page's scripts and images are not offered Basic. */
  challengeTo(request: Received): Readonly<Record<string, string>> {
    return { ...this.#challengeFor(request).headers() };
  }

  #challengeFor(request: Received): Challenge {
    return (request.header('sec-fetch-mode') ?? 'navigate') === 'navigate' ? this.#challenge : this.#quietChallenge;
  }

  /**
   * The reply to a key that lacks permissions. The scope includes its present grants and its replacement, so that an
   * application that asks for it keeps what it had.
   */
  lacking(request: Received, { apiKey }: Principal, missing: readonly Permission[], word = 'and'): ErrorReply {
    const had = apiKey.audience === null ? [] : [...scopeItems(apiKey), replacing(apiKey.id)];
    const scope = `, scope="${[...new Set([...had, ...missing])].join(' ')}"`;
    const message = `This key lacks ${formatList(missing, word)}.`;
    return this.#refuse(request, 'FORBIDDEN', message, 'insufficient_scope', scope).refusal;
  }

  #refuseGone(request: Received, { apiKey }: Principal): { refusal: ErrorReply } {
    return this.#refuseKey(request, 'unknown', prefixOf(apiKey.publicId), this.#context.clients.of(request).address);
  }

  /** Refuses an invalid key, or replies that there were too many from its address. */
  #refuseKey(
    request: Received,
    reason: RefusalReason,
    prefix: string | undefined,
    address: string | undefined,
  ): { refusal: ErrorReply } {
    this.#context.refusals.add('key refused', { reason, prefix, address }, request.notes);
    const waitUs = address === undefined ? undefined : this.#context.failedCredentials?.add(sourceOf(address));
    if (waitUs !== undefined) return { refusal: tooManyFailures(waitUs) };
    return this.#refuse(request, 'UNAUTHENTICATED', NOT_VALID, 'invalid_token');
  }

  /** Refuses a request without credentials, or with unclear ones. */
  #refuseUnread(
    request: Received,
    { kind, headers }: Exclude<Credentials, { kind: 'token' }>,
  ): { refusal: ErrorReply } {
    const challenge = this.#challenge;
    if (kind === 'none') return this.#refuse(request, 'UNAUTHENTICATED', challenge.missing);
    const message = kind === 'several' ? challenge.several(headers) : challenge.malformed(headers[0]!);
    return this.#refuse(request, 'INVALID_REQUEST', message, 'invalid_request');
  }

  #refuse(
    request: Received,
    code: 'INVALID_REQUEST' | 'UNAUTHENTICATED' | 'FORBIDDEN',
    message: string,
    problem?: Problem,
    more = '',
  ): { refusal: ErrorReply } {
    const found = code === 'INVALID_REQUEST' ? undefined : this.#discover?.(request);
    const scope = found && found.scope.length > 0 && more === '' ? `, scope="${found.scope.join(' ')}"` : more;
    const parameters = found ? `${scope}, resource_metadata="${found.metadata}"` : scope;
    return {
      refusal: errorReply(code, message, this.#challengeFor(request).headers(problem, parameters)),
    };
  }
}
