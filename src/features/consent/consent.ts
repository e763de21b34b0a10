import { type Actor, OPERATOR, requirePermission } from '../../keys/authorization/index.ts';
import { checkOptions, checkSearchText, KeysError, printable, type Source } from '../../keys/basics/index.ts';
import type { Parts, Transaction } from '../../keys/changes/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { type ConsentApproval, type ConsentRequest, CONSENTS, KEPT_MS } from './consent-request.ts';
import { requireFlow } from './consent-flow.ts';
import { createSecret } from '../../keys/secret/index.ts';
import type { FeatureParts } from '../../keys/service/index.ts';
import {
  approveRequest,
  CHOICE_OPTIONS,
  type ConsentChoice,
  denyRequest,
  requireKnown,
  requirePending,
  requireToSeeRequests,
} from './approval.ts';
import { actorOf, type AskedConsent, buildRequest, keepRequest, type NewConsentRequest } from './ask.ts';
import { type Counted, Pace } from './pace.ts';
import { createCode, digestCode, randomLetters, readUserCode } from './codes.ts';
import { type Ended, endKey, type KeyToEnd, refusalToEnd } from './end-key.ts';
import {
  digestRedemption,
  findReplaced,
  findStanding,
  redeem,
  type Redeemed,
  type Redemption,
  refusalFor,
  type RefusedRedemption,
  repeatKey,
  UNKNOWN,
} from './redeem.ts';
import {
  DEFAULT_REFRESH,
  findRefreshing,
  isReuseNoted,
  noteReuse,
  type Refreshed,
  type RefreshRequest,
  refreshKey,
} from './refresh.ts';

/**
 * What a person decides by: a code that an application shows, typed somewhere, or the page that they were shown.
 * @property by who types it; undefined where that was counted before
 */
export type Handle = { readonly userCode: string; readonly by?: Source } | { readonly page: string };

/** An approved request, and the code that the person takes back to the application; undefined without a redirect. */
export interface ApprovedConsent {
  request: ConsentRequest;
  code: string | undefined;
}

/** What a polling application is told beside what came of it. */
export type Polled = Redeemed | { readonly refused: RefusedRedemption | 'slow_down'; readonly reason: string };

const SUFFIX_LENGTH = 6;
const TOO_EARLY = { refused: 'slow_down', reason: 'too early' } as const;

/** How applications get keys: they ask, a person who holds the grants agrees, narrows or refuses, and they get one. */
export class Consent {
  readonly #options: Parts;
  readonly #pace: Pace;
  /** When requests were last forgotten: that takes time, and anybody may ask. */
  #forgottenAt = 0;

  constructor(options: Parts & Pick<FeatureParts, 'shared'>) {
    this.#options = options;
    this.#pace = options.shared(Pace);
  }

  /**
   * Counts what anybody may do, before anything of it is read; a failure, once it is known.
   * @param source where it comes from, as what may do so only so often
   * @throws KeysError TOO_MANY_REQUESTS
   */
  count(what: Counted, source: Source): void {
    this.#pace.count(what, source);
  }

  /**
   * Takes a request of an application that is known, for grants that exist. Call `count` first.
   * @throws ValidationError; KeysError TOO_MANY_REQUESTS, CONSENT_OFF, STORE_…
   */
  async ask(wanted: NewConsentRequest): Promise<AskedConsent> {
    const { clock, randomId, randomBytes, transactions, catalog } = this.#options;
    requireFlow(catalog, wanted.redirect ? 'CODE' : 'DEVICE');
    const now = clock();
    const asked = buildRequest(wanted, { now, id: randomId(), randomBytes });
    const forgets = Math.abs(now - this.#forgottenAt) >= KEPT_MS;
    const keep = (transaction: Transaction) => keepRequest(transaction, asked.request, forgets);
    await transactions.run(OPERATOR, keep, { now, auditActor: actorOf(asked.request) });
    if (forgets) this.#forgottenAt = now;
    return asked;
  }

  /** The request that waits for a decision. @throws KeysError NOT_FOUND, REQUEST_DECIDED, TOO_MANY_REQUESTS, STORE_… */
  async show(handle: Handle): Promise<ConsentRequest> {
    return requirePending(await this.find(handle));
  }

  /** The request, whatever was decided. @throws KeysError NOT_FOUND, TOO_MANY_REQUESTS, STORE_… */
  async find(handle: Handle): Promise<ConsentRequest> {
    const { repository, clock } = this.#options;
    return requireKnown(await repository.port(CONSENTS).find('handleDigest', this.#digestRedemption(handle)), clock());
  }

  /** One of those that `list` has, or had. @throws ForbiddenError; KeysError NOT_FOUND, STORE_… */
  async findListed(id: string, actor: Actor): Promise<ConsentRequest> {
    requireToSeeRequests(actor);
    checkSearchText(id);
    const { repository, clock } = this.#options;
    const found = await repository.port(CONSENTS).find('id', id);
    if (found && clock() < found.expiresAt) return found;
    throw new KeysError('NOT_FOUND', `No application waits with the code or id "${printable(id)}".`);
  }

  /** The open requests, oldest first. @throws ForbiddenError; KeysError STORE_… */
  async list(limit: number, actor: Actor): Promise<ConsentRequest[]> {
    requireToSeeRequests(actor);
    const { repository, clock } = this.#options;
    return repository.port(CONSENTS).listOpen(clock(), limit);
  }

  /**
   * Agrees to a request. The key will be one that the actor has created.
   * @throws ValidationError; KeysError NOT_FOUND, REQUEST_DECIDED, CONSENT_OFF; ForbiddenError; a STORE_ error
   */
  async approve({ id, flow }: ConsentRequest, choice: ConsentChoice, actor: Actor): Promise<ApprovedConsent> {
    checkOptions('keys.consent.approve', choice, CHOICE_OPTIONS);
    const { randomBytes, randomId, operator, catalog } = this.#options;
    requireFlow(catalog, flow);
    const code = createCode(randomBytes);
    const made = {
      operator,
      suffix: randomLetters(SUFFIX_LENGTH, randomBytes),
      id: randomId(),
      secret: createSecret(randomBytes),
      codeDigest: digestCode('redirect', code),
    };
    const request = await this.#options.transactions.run(actor, (transaction) =>
      approveRequest(transaction, id, choice, made),
    );
    return { request, code: request.flow === 'CODE' ? code : undefined };
  }

  /**
   * Refuses a request, as whoever has its code may.
   * @param actor null for a person who has shown no key
   * @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error
   */
  async deny({ id }: Pick<ConsentRequest, 'id'>, actor: Actor | null): Promise<ConsentRequest> {
    if (actor !== null && actor !== OPERATOR) requirePermission(actor, 'API_KEY', 'CREATE_OWN');
    return this.#options.transactions.run(
      actor ?? OPERATOR,
      (transaction) => denyRequest(transaction, id, { isKnown: actor !== null }),
      { revokes: true, ...(actor === null && { auditActor: { kind: 'REQUEST', id: null, name: null } }) },
    );
  }

  /**
   * Gives an application its key, once. A code that is good for nothing costs no transaction: anybody may send one.
   * @param address the client's, for the audit log
   * @param lifetime see `RefreshSettings`
   * @throws KeysError STORE_…
   */
  async redeem(redemption: Redemption, address?: string, lifetime = DEFAULT_REFRESH.lifetime): Promise<Polled> {
    const { repository, catalog, clock, randomBytes, randomId, listeners } = this.#options;
    const { polls } = this.#pace;
    const now = clock();
    const digest = digestRedemption(redemption);
    // However often an application asks, the store is not.
    const isRemembered = polls.has(digest);
    if (isRemembered && polls.isTooEarly(digest, now)) return TOO_EARLY;
    const standing = await findStanding(repository.port(CONSENTS), redemption, now);
    const isDevice = 'deviceCode' in redemption && !('reason' in standing && standing.reason === UNKNOWN);
    if (isDevice && !isRemembered && polls.isTooEarly(digest, now)) return TOO_EARLY;
    if ('refused' in standing) return standing;
    if ('repeat' in standing) return repeatKey(repository, standing, redemption, now);
    const options = { catalog, now, listeners, id: randomId(), randomBytes, lifetime, address };
    try {
      const revokes = 'revoke' in standing;
      const redeemed = await repository.write((writer) => redeem(writer, redemption, options), { revokes });
      if ('key' in redeemed) polls.forget(digest);
      return redeemed;
    } catch (error) {
      return refusalFor(error, redemption);
    }
  }

  /**
   * Gives an application the newest secret of its key. A token that is good for nothing costs no transaction.
   * @param address the client's, for the audit log
   * @param leeway see `RefreshSettings`
   * @throws KeysError STORE_…
   */
  async refresh(request: RefreshRequest, address?: string, leeway = DEFAULT_REFRESH.leeway): Promise<Refreshed> {
    const { repository, catalog, clock, operator, listeners, randomBytes } = this.#options;
    const now = clock();
    const found = await findRefreshing(repository, repository.port(CONSENTS), request, { now, leeway });
    if (!('refused' in found)) {
      const options = { catalog, now, operator, listeners, randomBytes, leeway };
      return repository.write((writer) => refreshKey(writer, request, options), { revokes: true });
    }
    const { reused, ...refused } = found;
    if (reused && !(await isReuseNoted(repository, reused, now))) {
      const options = { catalog, now, operator, listeners, clientId: request.clientId, address };
      await repository.write((writer) => noteReuse(writer, reused, options));
    }
    return refused;
  }

  /** The key whose place that of a request is to take; undefined where there is none. @throws KeysError STORE_… */
  replacedBy(request: ConsentRequest): Promise<ApiKey | undefined> {
    const { repository } = this.#options;
    return findReplaced(repository, repository.port(CONSENTS), request);
  }

  /**
   * Ends a key, as whoever has it may, if it was given to an application (RFC 7009).
   * @param address where that is asked, for the audit log
   * @throws KeysError STORE_…
   */
  async end(key: KeyToEnd, address: string | undefined): Promise<Ended> {
    const { repository, catalog, clock, operator, listeners } = this.#options;
    const now = clock();
    const refused = await refusalToEnd(repository, key, now);
    const options = { catalog, now, operator, listeners, address };
    return refused ?? repository.write((writer) => endKey(writer, key, options), { revokes: true });
  }

  /** @throws KeysError NOT_FOUND, TOO_MANY_REQUESTS */
  #digestRedemption(handle: Handle): string {
    if ('page' in handle) return digestCode('page', handle.page);
    const code = readUserCode(handle.userCode);
    if (code === undefined)
      throw new KeysError('NOT_FOUND', `"${printable(handle.userCode)}" is not a code. Codes look like WDJB-MJHT.`);
    if (handle.by) this.count('code', handle.by);
    return digestCode('user', code);
  }
}

/** What an application asks for, as whoever decides sees it. */
export interface ConsentState extends Pick<
  ConsentRequest,
  | 'id'
  | 'flow'
  | 'client'
  | 'audience'
  | 'status'
  | 'roles'
  | 'permissions'
  | 'keyExpiresIn'
  | 'address'
  | 'createdAt'
  | 'expiresAt'
> {
  /** The key that it gets. */
  readonly approval: Pick<ConsentApproval, 'keyName' | 'roles' | 'permissions' | 'keyExpiresAt'> | null;
}

/** A request of an application: by the code that it shows, or by its id. */
export type ConsentPlace = { readonly userCode: string } | { readonly requestId: string };
