import { formatList, type OrRefusal, sourceOf } from '../keys/basics/index.ts';
import type { BearerAuthOptions, CheckParts, RequiredPermissions } from './bearer-options.ts';
import { Challenge, CredentialReader, type Credentials, type Problem } from './credentials.ts';
import {
  addressOf,
  ClientAddresses,
  type Received,
  type RequestDetails,
  requestTo,
  type RequestTo,
} from './received.ts';
import {
  codeOf,
  errorReply,
  rateLimitFields,
  type RateLimitFields,
  type Reply,
  secondsUntil,
  unavailable,
  withFields,
} from './replies.ts';
import type { Authenticator, RefusalReason, VerifiedKey } from '../keys/authentication/index.ts';
import {
  type AccessObserver,
  NOT_YET,
  ONCE,
  type Principal,
  type Restrictions,
  restrictionsFor,
} from '../keys/authorization/index.ts';
import { isFor } from '../keys/key/index.ts';
import { BEARER_ALONE, digestSecret, prefixOf } from '../keys/secret/index.ts';
import {
  type Action,
  type Permission,
  replacing,
  type Role,
  scopeItems,
  splitPermission,
} from '../keys/permissions/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { Answer, Limited, Standing } from '../limits/index.ts';

/** What requests are held to, and what is told of them. */
interface CheckContext extends CheckParts, Limited {
  readonly authenticator: Authenticator;
  readonly clients: ClientAddresses;
}

/** Observes one request of a key: what it lacks is also logged, with the client's address. */
class RequestObserver implements AccessObserver {
  readonly #principal: Principal;
  readonly #context: CheckContext;
  readonly #request: Received;
  /** Undefined once the request has lacked a permission. */
  #usedAt: number | undefined;

  /** @param usedAt when the request was counted as a use of its key, in milliseconds since 1970 */
  constructor(principal: Principal, context: CheckContext, request: Received, usedAt: number) {
    this.#principal = principal;
    this.#context = context;
    this.#request = request;
    this.#usedAt = usedAt;
  }

  used(permission: Permission): void {
    this.#request.notes?.details?.permissions.add(permission);
    this.#principal.observer?.used(permission);
  }

  granted(role: Role): void {
    this.#principal.observer?.granted(role);
  }

  called(tool: string): void {
    this.#principal.observer?.called(tool);
  }

  passed(route: string): void {
    this.#principal.observer?.passed(route);
  }

  lacked(missing: readonly Permission[], _address?: string, tool?: string): void {
    const { apiKey: key, observer } = this.#principal;
    const { refusals, clients, authenticator } = this.#context;
    if (this.#usedAt !== undefined) authenticator.noteForbidden(this.#principal, this.#usedAt);
    this.#usedAt = undefined;
    const { address } = clients.of(this.#request);
    const refused = { reason: 'forbidden', prefix: prefixOf(key.publicId), missing, address };
    if (this.#request.notes?.details) this.#request.notes.details.code = 'FORBIDDEN';
    refusals.add('request forbidden', refused, this.#request.notes);
    observer?.lacked(missing, address, tool);
  }
}

/** What came of holding a request to the restrictions of its key; `gone` if that was deleted meanwhile. */
type LimitDecision = OrRefusal<{ readonly fields: RateLimitFields | undefined }, Reply> | 'gone';

/** Holds requests to the restrictions of their keys: where they may come from, and how many there may be. */
class LimitCheck {
  readonly #context: CheckContext;

  constructor(context: CheckContext) {
    this.#context = context;
  }

  /**
   * Counts a request that has just arrived, if it may come from there.
   * @param usedAt when it was counted as a use before, in milliseconds since 1970
   */
  enter(
    principal: Principal,
    restrictions: Restrictions,
    request: Received,
    usedAt?: number,
  ): LimitDecision | Promise<LimitDecision> {
    const refusal = this.refuseAddress(principal, restrictions, request, usedAt);
    if (refusal) return { refusal };
    if (restrictions.limits.length === 0) return { fields: undefined };
    const { limiter } = this.#context;
    if (request.charge === NOT_YET && !limiter.isUsedUp(restrictions)) return { fields: undefined };
    const answer = limiter.enter(restrictions);
    if (!(answer instanceof Promise)) return this.#decideByLimits(answer, principal, request, usedAt);
    return answer.then(
      (decided) => this.#decideByLimits(decided, principal, request, usedAt),
      (error: unknown) => {
        this.#context.failures.add(error, request.notes?.id);
        return { refusal: unavailable() };
      },
    );
  }

  /**
   * The reply to a request that may not come from where it does, or of which it is not certain where that is.
   * @param usedAt when it was counted as a use before, in milliseconds since 1970
   */
  refuseAddress(
    principal: Principal,
    { networks }: Restrictions,
    request: Received,
    usedAt?: number,
  ): Reply | undefined {
    if (networks.length === 0) return undefined;
    const { address, isCertain, unclear } = this.#context.clients.of(request);
    if (isCertain && address !== undefined && networks.every((network) => network.includes(address))) return undefined;
    this.noteRefused('request forbidden', 'address', principal, request, usedAt, unclear);
    return errorReply('FORBIDDEN', 'This key may not be used from this address.');
  }

  #decideByLimits(answer: Answer, principal: Principal, request: Received, usedAt: number | undefined): LimitDecision {
    if (answer === 'gone') return answer;
    const { isWithin, standings } = answer;
    if (isWithin) return { fields: rateLimitFields(standings) };
    this.noteRefused('request limited', 'limited', principal, request, usedAt);
    return { refusal: overLimit(standings) };
  }

  /** Notes that a request was refused, though its key is valid. @param detail what exactly, for the log */
  noteRefused(
    message: string,
    reason: 'address' | 'limited' | 'audience',
    principal: Principal,
    request: Received,
    usedAt?: number,
    detail?: string,
  ): void {
    const { refusals, clients, authenticator } = this.#context;
    const { address } = clients.of(request);
    const refused = { reason, prefix: prefixOf(principal.apiKey.publicId), address };
    refusals.add(message, detail === undefined ? refused : { ...refused, detail }, request.notes);
    authenticator.noteRefusal(principal, reason, address, usedAt);
  }
}

/** The reply to a request whose key is not valid, as those of too many others were from its address. */
export function tooManyFailures(waitUs: number): Reply {
  const seconds = secondsUntil(waitUs);
  const message = `Too many requests from here had API keys that are not valid. Try again in ${inWords(seconds)}.`;
  return errorReply('RATE_LIMITED', message, { 'Retry-After': `${seconds}` });
}

function inWords(seconds: number): string {
  return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
}

/** The reply to a request over a limit: of those that are used up, the one that takes longest. */
function overLimit(standings: readonly Standing[]): Reply {
  const fewest = Math.min(...standings.map(({ remaining }) => remaining));
  const isShort = ({ remaining, weight }: Standing) => remaining < weight;
  // What others have leased may have come back since, but was not asked for again yet.
  const known = standings.some(isShort)
    ? standings
    : standings.map(({ ...each }) =>
        each.remaining === fewest
          ? { ...each, remaining: 0, waitUs: Number.isFinite(each.moreIn) ? each.moreIn : 0 }
          : each,
      );
  const [longest] = known.filter(isShort).toSorted((a, b) => b.waitUs - a.waitUs);
  const { limit, count, unit, remaining, weight, waitUs } = longest!;
  const fields = rateLimitFields(known);
  const costs =
    weight > 1 ? ` The request counts as ${weight}, and ${remaining} ${remaining === 1 ? 'is' : 'are'} left.` : '';
  if (waitUs === Infinity)
    return errorReply('BUDGET_SPENT', `${spentText(unit, count)}${costs} Waiting does not help.`, fields);
  if (weight > count)
    return errorReply('RATE_LIMITED', `The request counts as ${weight}, more than the limit of ${limit}.`, fields);
  const seconds = secondsUntil(waitUs);
  const message = `The limit of ${limit} is used up.${costs} Try again in ${inWords(seconds)}.`;
  return errorReply('RATE_LIMITED', message, { 'Retry-After': `${seconds}`, ...fields });
}

function spentText(unit: Standing['unit'], count: number): string {
  if (unit === 'budget') return `The budget of ${count} is spent.`;
  return count === 1 ? 'The key has been used, and works once.' : `The key has been used, and works ${count} times.`;
}

const NOT_VALID = 'The API key is not valid.';

/** A request that was accepted: who makes it, and by which token. */
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
type CheckedCredentials = Pick<Admitted, 'token' | 'digest' | 'fields' | 'required'>;
type AcceptedKey = Pick<VerifiedKey, 'principal'>;

/** What a key must be allowed to: all of these permissions, or one of them where that is enough. */
interface Requirement {
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
export type Admission = OrRefusal<Admitted, Reply>;

/** Notes who was accepted, or refused, and that this is done. */
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

/** What clients are told who want to get a key (RFC 9728, section 5.1). */
export interface Discovery {
  /** Where the metadata of what is guarded is. */
  readonly metadata: string;
  /** What a key needs for a request; empty where that is not said. */
  readonly scope: readonly string[];
}

/** Tells clients where they get keys for services that proxies guard. */
export interface GuardedDiscovery {
  isOwn(to: RequestTo): boolean;
  find(to: RequestTo): Discovery | undefined;
  answer(to: RequestTo): Reply | undefined;
}

/** What requests are checked by. */
export interface CheckOptions extends Omit<BearerAuthOptions, 'keys'> {
  keys: Pick<KeysService, 'authenticator' | 'catalog'> & Limited;
  /** What a request was made to that does not know it itself: what is surely our own. */
  toOf?: ((request: Received) => RequestTo | undefined) | undefined;
  /** Whether what a request says that it was made to is surely our own. Default: nothing is. */
  isOwn?: ((to: RequestTo) => boolean) | undefined;
  /** Where somebody gets a key for a request; undefined where nobody is told. */
  discover?: ((request: Received) => Discovery | undefined) | undefined;
}

/** Checks the API keys of requests (RFC 6750, RFC 7617). */
export class BearerCheck {
  readonly #required: Requirement | undefined;
  readonly #reader: CredentialReader;
  readonly #challenge: Challenge;
  /** Without Basic, for which a browser would ask for a password over the page that somebody sees. */
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
   * Checks a request that has just arrived. If it is within the limits of its key, it counts as a use of that.
   * @param required what it requires, if that is not the same for all
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

  /** Checks a request like `enter`, of somebody who has shown a token with this digest before. */
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
   * Checks a request again that was accepted: its key may have been deleted while the body arrived. Counts as no
   * further use.
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
    // While the store was asked for requests within the limits, the key may have changed.
    return held.then(settle).then((admission) => ('refusal' in admission ? admission : this.again(request, admission)));
  }

  /**
   * Counts a request that was accepted and has not counted yet, now that it is known as what.
   * @returns the same with the headers of its answer; where the store was asked, check it again
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

  /** Whether a request was made to what keys are for. */
  #isFor(audiences: readonly string[], request: Received): boolean {
    const to = request.to ? (this.#isOwn?.(request.to) ? request.to : undefined) : this.#toOf(request);
    const address = to && addressOf(to);
    return address !== undefined && audiences.every((audience) => isFor(audience, address));
  }

  /** Refuses a key that is for something else as if it were not valid (RFC 6750, section 3.1). */
  #refuseAudience(request: Received, principal: Principal): { refusal: Reply } {
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

  /** Whether the key of a request came by Basic authentication. */
  isByBasic(request: Received): boolean {
    return this.#reader.isByBasic(request);
  }

  /** Whether a request has something where a key may stand, whatever that is. */
  hasCredentials(request: Received): boolean {
    const { kind, headers } = this.#reader.read(request);
    return kind !== 'none' || headers.length > 0;
  }

  /** The header that tells somebody who sees a page how a program sends a key. */
  get challengeToPeople(): Readonly<Record<string, string>> {
    return { ...this.#quietChallenge.headers() };
  }

  /** The header that tells a client how to send a key: scripts and images of a page are not told of Basic. */
  challengeTo(request: Received): Readonly<Record<string, string>> {
    return { ...this.#challengeFor(request).headers() };
  }

  #challengeFor(request: Received): Challenge {
    return (request.header('sec-fetch-mode') ?? 'navigate') === 'navigate' ? this.#challenge : this.#quietChallenge;
  }

  /**
   * The reply to a key that lacks permissions. An application that asks for the scope that it names gets what it had,
   * too, by a key that takes the place of this one.
   */
  lacking(request: Received, { apiKey }: Principal, missing: readonly Permission[], word = 'and'): Reply {
    const had = apiKey.audience === null ? [] : [...scopeItems(apiKey), replacing(apiKey.id)];
    const scope = `, scope="${[...new Set([...had, ...missing])].join(' ')}"`;
    const message = `This key lacks ${formatList(missing, word)}.`;
    return this.#refuse(request, 'FORBIDDEN', message, 'insufficient_scope', scope).refusal;
  }

  #refuseGone(request: Received, { apiKey }: Principal): { refusal: Reply } {
    return this.#refuseKey(request, 'unknown', prefixOf(apiKey.publicId), this.#context.clients.of(request).address);
  }

  /** Refuses a key that is not valid, or, after too many of those from one address, says so instead. */
  #refuseKey(
    request: Received,
    reason: RefusalReason,
    prefix: string | undefined,
    address: string | undefined,
  ): { refusal: Reply } {
    this.#context.refusals.add('key refused', { reason, prefix, address }, request.notes);
    const waitUs = address === undefined ? undefined : this.#context.failedCredentials?.add(sourceOf(address));
    if (waitUs !== undefined) return { refusal: tooManyFailures(waitUs) };
    return this.#refuse(request, 'UNAUTHENTICATED', NOT_VALID, 'invalid_token');
  }

  /** Refuses a request that has no credentials, or none that can be told. */
  #refuseUnread(request: Received, { kind, headers }: Exclude<Credentials, { kind: 'token' }>): { refusal: Reply } {
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
  ): { refusal: Reply } {
    const found = code === 'INVALID_REQUEST' ? undefined : this.#discover?.(request);
    const scope = found && found.scope.length > 0 && more === '' ? `, scope="${found.scope.join(' ')}"` : more;
    const parameters = found ? `${scope}, resource_metadata="${found.metadata}"` : scope;
    return {
      refusal: errorReply(code, message, this.#challengeFor(request).headers(problem, parameters)),
    };
  }
}
