import { type Actor, OPERATOR, requirePermission } from '../../keys/authorization/index.ts';
import { checkSearchText, KeysError, printable, type Source } from '../../keys/basics/index.ts';
import type { Parts, Transaction } from '../../keys/changes/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { type ConsentApproval, type ConsentRequest, CONSENTS, KEPT_MS } from './consent-request.ts';
import { requireFlow } from './consent-flow.ts';
import { createSecret } from '../../keys/secret/index.ts';
import type { FeatureParts } from '../../keys/service/index.ts';
import {
  approveRequest,
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
 * Identifies a request to a person: the code that an application shows, or the token of their page.
 * @property by source of the typed code; undefined if already counted
 */
export type Handle = { readonly userCode: string; readonly by?: Source } | { readonly page: string };

/** An approved request, and the code that the person takes back to the application; undefined without a redirect. */
export interface ApprovedConsent {
  request: ConsentRequest;
  code: string | undefined;
}

/** The answer to a polling application. */
export type Polled = Redeemed | { readonly refused: RefusedRedemption | 'slow_down'; readonly reason: string };

const SUFFIX_LENGTH = 6;
const TOO_EARLY = { refused: 'slow_down', reason: 'too early' } as const;

/**
 * Lets applications get keys: they send a request, and a person who holds the grants approves all or part of it, or
 * denies it.
 */
export class Consent {
  readonly #options: Parts;
  readonly #pace: Pace;
  /** Time of the last clean-up, which takes a while and must not run for each request. */
  #forgottenAt = 0;

  constructor(options: Parts & Pick<FeatureParts, 'shared'>) {
    this.#options = options;
    this.#pace = options.shared(Pace);
  }

  /**
   * Counts an action that needs no key before reading it, or a failure once known.
   * @param source the address and network it comes from
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

  /** Finds a request by its id in `list`. @throws ForbiddenError; KeysError NOT_FOUND, STORE_… */
  async findListed(id: string, actor: Actor): Promise<ConsentRequest> {
    requireToSeeRequests(actor);
    checkSearchText(id);
    const { repository, clock } = this.#options;
    const found = await repository.port(CONSENTS).find('id', id);
    if (found && clock() < found.expiresAt) return found;
    throw new KeysError('NOT_FOUND', `There is no open request with the code or id "${printable(id)}".`);
  }

  /** The open requests, oldest first. @throws ForbiddenError; KeysError STORE_… */
  async list(limit: number, actor: Actor): Promise<ConsentRequest[]> {
    requireToSeeRequests(actor);
    const { repository, clock } = this.#options;
    return repository.port(CONSENTS).listOpen(clock(), limit);
  }

  /**
   * Approves a request. The key counts as created by the actor.
   * @throws ValidationError; KeysError NOT_FOUND, REQUEST_DECIDED, CONSENT_OFF; ForbiddenError; a STORE_ error
   */
  async approve({ id, flow }: ConsentRequest, choice: ConsentChoice, actor: Actor): Promise<ApprovedConsent> {
    const { randomBytes, randomId, operator, catalog } = this.#options;
    requireFlow(catalog, flow);
    const code = createCode(randomBytes);
    const made = {
      operator,
      suffix: randomLetters(SUFFIX_LENGTH, randomBytes),
      id: randomId(),
      secret: createSecret(randomBytes, catalog.prefix),
      codeDigest: digestCode('redirect', code),
    };
    const request = await this.#options.transactions.run(actor, (transaction) =>
      approveRequest(transaction, id, choice, made),
    );
    return { request, code: request.flow === 'CODE' ? code : undefined };
  }

  /** Denies a request, which anyone with its code can do. @param actor null for a person without a key */
  async deny({ id }: Pick<ConsentRequest, 'id'>, actor: Actor | null): Promise<ConsentRequest> {
    if (actor !== null && actor !== OPERATOR) requirePermission(actor, 'API_KEY', 'CREATE_OWN');
    return this.#options.transactions.run(
      actor ?? OPERATOR,
      (transaction) => denyRequest(transaction, id, { isKnown: actor !== null }),
      { revokes: true, ...(actor === null && { auditActor: { kind: 'REQUEST', id: null, name: null } }) },
    );
  }

  /**
   * Gives an application its key, once. An invalid code costs no transaction, because anyone can send one.
   * @param address the client's, for the audit log
   * @param lifetime see `RefreshSettings`
   * @throws KeysError STORE_…
   */
  async redeem(redemption: Redemption, address?: string, lifetime = DEFAULT_REFRESH.lifetime): Promise<Polled> {
    const { repository, catalog, clock, randomBytes, randomId, listeners } = this.#options;
    const { polls } = this.#pace;
    const now = clock();
    const digest = digestRedemption(redemption);
    // Polls that come too early must not reach the store.
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

  /** The key that the key of a request will replace, if any. @throws KeysError STORE_… */
  replacedBy(request: ConsentRequest): Promise<ApiKey | undefined> {
    const { repository } = this.#options;
    return findReplaced(repository, repository.port(CONSENTS), request);
  }

  /**
   * Revokes a key that was given to an application, which anyone who has the key can do (RFC 7009).
   * @param address of the client, for the audit log
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

/** A request as the person who decides sees it. */
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
