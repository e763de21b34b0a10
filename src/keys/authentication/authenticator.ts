import type { Activity } from './activity.ts';
import {
  type Actor,
  type Chain,
  chainExpiry,
  chainOf,
  chainStatus,
  mayFor,
  type Principal,
  principalOf,
} from '../authorization/index.ts';
import { type ApiKey, isInProgress, type Status } from '../key/index.ts';
import type { Catalog, Permission } from '../permissions/index.ts';
import type { FoundBySecret, KeyRepository } from '../repository/index.ts';
import { digestSecret, hasOwnForm, prefixOf, readSecret } from '../secret/index.ts';

/** Why a secret is refused. `rotated` means that a newer secret has replaced it. */
export type RefusalReason = 'malformed' | 'unknown' | 'damaged' | 'disabled' | 'expired' | 'rotated';

/** The key of an accepted secret, with its ancestors and the public id of the secret itself. */
interface AcceptedLookup {
  key: ApiKey;
  chain: Chain;
  publicId: string;
  secret: 'current' | 'previous';
  refused?: undefined;
}

/** Why a secret is refused, and its key, if there is one. */
type RefusedLookup =
  | { key: ApiKey; chain: Chain; publicId: string; refused: 'damaged' | 'disabled' | 'expired' | 'rotated' }
  | { key?: undefined; publicId?: string | undefined; refused: 'malformed' | 'unknown' };

/** The result of looking up a secret. */
type Lookup = AcceptedLookup | RefusedLookup;

/** The principal of an accepted secret, or why the secret is refused. Only logs may tell the reasons apart. */
export type Authentication = { principal: Principal } | { refused: RefusalReason; publicId?: string };

const REFUSALS = { ACTIVE: undefined, DISABLED: 'disabled', EXPIRED: 'expired' } as const satisfies Record<
  Status,
  RefusalReason | undefined
>;

/**
 * Finds the key that a secret belongs to, at once if the store can. The checksum of a secret in our own format is
 * verified first, so that a typo costs no query; a secret in another format may have been imported.
 * @param digest that of the secret, if the caller has it already
 * @throws KeysError STORE_… if the store does not answer
 */
export function lookUp(
  secret: string,
  repository: KeyRepository,
  now: number,
  digest: string = digestSecret(secret),
): Lookup | Promise<Lookup> {
  const publicId = readSecret(secret)?.publicId;
  if (publicId === undefined && hasOwnForm(secret)) return { refused: 'malformed' };
  const unknown = { refused: publicId === undefined ? 'malformed' : 'unknown', publicId } as const;
  return lookUpDigest(digest, repository, now, unknown);
}

/**
 * Finds the key that a secret belongs to, by its digest.
 * @param unknown what to say if it belongs to none
 * @throws KeysError STORE_… if the store does not answer
 */
function lookUpDigest(
  digest: string,
  repository: KeyRepository,
  now: number,
  unknown: RefusedLookup = { refused: 'unknown' },
): Lookup | Promise<Lookup> {
  const judge = (found: FoundBySecret | undefined): Lookup => (found ? toLookup(found, now) : unknown);
  const found = repository.findByDigest(digest);
  return found instanceof Promise ? found.then(judge) : judge(found);
}

function toLookup({ key, ancestors, publicId, secret }: FoundBySecret, now: number): Lookup {
  const chain = chainOf(key, ancestors);
  const known = { key, chain, publicId };
  if (secret === 'rotated' || (secret === 'previous' && !isInProgress(key.rotation, now)))
    return { refused: 'rotated', ...known };
  const isDamaged = chain.keys.some(({ damaged }) => damaged);
  const refused = isDamaged ? 'damaged' : REFUSALS[chainStatus(chain, now)];
  if (refused) return { refused, ...known };
  return { ...known, secret };
}

/** How the secrets of requests were checked since the program started. */
export interface CheckCounts {
  /** Those that were remembered. */
  remembered: number;
  /** Those that the store was asked for, and accepted. */
  found: number;
  /** Those that were refused, by the reason. */
  readonly refused: Record<RefusalReason, number>;
  /** Those that were forgotten to make room for others. */
  evicted: number;
}

/** Before the first request. */
export function noChecks(): CheckCounts {
  const refused = { malformed: 0, unknown: 0, damaged: 0, disabled: 0, expired: 0, rotated: 0 };
  return { remembered: 0, found: 0, refused, evicted: 0 };
}

/** The status of a secret: that of its key, or ROTATED if a newer secret has replaced it. */
export type SecretStatus = Status | 'ROTATED';

/** The key that a secret belongs to, with the public id of the secret itself, or why there is none. */
export type Identification =
  | { apiKey: ApiKey; chain: Chain; status: SecretStatus; publicId: string }
  | { unknown: 'malformed' | 'unknown'; publicId?: string | undefined };

/**
 * Finds the key that a secret belongs to, whatever its status. A key that the actor may not read counts as unknown.
 * @throws KeysError STORE_… if the store does not answer
 */
export async function identify(
  secret: string,
  repository: KeyRepository,
  actor: Actor,
  now: number,
): Promise<Identification> {
  const found = await lookUp(secret, repository, now);
  if (!found.key) return { unknown: found.refused, publicId: found.publicId };
  const { key, chain, publicId, refused } = found;
  if (!mayFor(actor, 'READ', key)) return { unknown: 'unknown', publicId };
  return { apiKey: key, chain, status: refused === 'rotated' ? 'ROTATED' : chainStatus(chain, now), publicId };
}

/** A key that was accepted by one of its secrets. */
export interface VerifiedKey {
  /** The principal that the secret authenticates. */
  principal: Principal;
  /** When the first key of its chain expires, in milliseconds since 1970; null for never. */
  expiresAt: number | null;
}

interface Entry extends VerifiedKey {
  digest: string;
  /** Its index in the list of all entries. */
  position: number;
}

/** How many secrets are kept by default. Each takes about 1 KB: see docs/operations.md. */
const MAX_VERIFIED_KEYS = 100_000;

/** What a cache of accepted secrets needs. */
interface VerifiedKeysOptions {
  repository: Pick<KeyRepository, 'revision' | 'keysChangedSince'>;
  /** Default: 100,000. */
  maxVerifiedKeys?: number | undefined;
  /** A number from 0 to 1, without 1. */
  random?: () => number;
  counts: Pick<CheckCounts, 'evicted'>;
}

/**
 * A cache of accepted secrets, by digest. A change of a key drops the secrets of that key and of its child keys. It
 * only holds secrets of the store, so requests with made-up secrets can neither fill it nor evict entries.
 */
export class VerifiedKeys {
  readonly #changes: Pick<KeyRepository, 'revision' | 'keysChangedSince'>;
  readonly #maxEntries: number;
  readonly #random: () => number;
  readonly #counts: Pick<CheckCounts, 'evicted'>;
  /** The revision of the store at which the entries are right. */
  #revision: number | undefined;
  readonly #entries = new Map<string, Entry>();
  readonly #list: Entry[] = [];
  /** For the id of each key, the entries in whose chain it is: one, which most keys have, or several. */
  readonly #byKey = new Map<string, Entry | Set<Entry>>();

  constructor({ repository, maxVerifiedKeys = MAX_VERIFIED_KEYS, random = Math.random, counts }: VerifiedKeysOptions) {
    this.#changes = repository;
    this.#maxEntries = maxVerifiedKeys;
    this.#random = random;
    this.#counts = counts;
  }

  /** How many there are. */
  get size(): number {
    return this.#list.length;
  }

  /** The entry of a digest, if it is right at this time and the store's present revision. */
  get(digest: string, clock: () => number): VerifiedKey | undefined {
    if (!this.#isUpToDate()) return undefined;
    const entry = this.#entries.get(digest);
    if (!entry || (entry.expiresAt !== null && entry.expiresAt <= clock())) return undefined;
    const { apiKey: key, secret } = entry.principal;
    return secret === 'current' || isInProgress(key.rotation, clock()) ? entry : undefined;
  }

  /**
   * Caches a secret that was accepted, unless a key of its chain may have changed since.
   * @param revision that of the store before it was asked
   */
  set(digest: string, revision: number | undefined, verified: VerifiedKey): void {
    if (revision === undefined || !this.#isUpToDate()) return;
    const { keys } = verified.principal.chain;
    if (revision !== this.#revision) {
      const changed = this.#changes.keysChangedSince(revision);
      if (changed === 'any' || keys.some(({ id }) => changed.includes(id))) return;
    }
    this.#drop(this.#entries.get(digest));
    // At random: what is evicted in the order of insertion or of use is never there when keys take turns.
    if (this.#list.length >= this.#maxEntries) {
      this.#drop(this.#list[Math.floor(this.#random() * this.#list.length)]);
      this.#counts.evicted += 1;
    }
    const entry = { ...verified, digest, position: this.#list.length };
    this.#entries.set(digest, entry);
    this.#list.push(entry);
    for (const { id } of keys) this.#link(id, entry);
  }

  /** Brings the entries to the store's present revision. Returns whether that is known. */
  #isUpToDate(): boolean {
    const revision = this.#changes.revision();
    if (revision === this.#revision) return revision !== undefined;
    if (revision === undefined) return false;
    const changed = this.#revision === undefined ? 'any' : this.#changes.keysChangedSince(this.#revision);
    this.#revision = revision;
    if (changed === 'any') this.#clear();
    else for (const id of changed) this.#dropKey(id);
    return true;
  }

  #clear(): void {
    this.#entries.clear();
    this.#byKey.clear();
    this.#list.length = 0;
  }

  #dropKey(id: string): void {
    const linked = this.#byKey.get(id);
    if (linked instanceof Set) for (const entry of linked) this.#drop(entry);
    else this.#drop(linked);
  }

  #drop(entry: Entry | undefined): void {
    if (!entry) return;
    this.#entries.delete(entry.digest);
    const last = this.#list.pop()!;
    if (last !== entry) {
      this.#list[entry.position] = last;
      last.position = entry.position;
    }
    for (const { id } of entry.principal.chain.keys) this.#unlink(id, entry);
  }

  #link(id: string, entry: Entry): void {
    const linked = this.#byKey.get(id);
    if (linked instanceof Set) linked.add(entry);
    else this.#byKey.set(id, linked && linked !== entry ? new Set([linked, entry]) : entry);
  }

  #unlink(id: string, entry: Entry): void {
    const linked = this.#byKey.get(id);
    if (linked instanceof Set) linked.delete(entry);
    if (linked === entry || (linked instanceof Set && linked.size === 0)) this.#byKey.delete(id);
  }
}

/** What an authenticator needs from outside. */
export interface AuthenticatorOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Records uses and refusals. */
  activity: Activity;
  /** Counts checks. */
  counts: CheckCounts;
  /** How many accepted secrets are remembered. Default: 100,000. */
  maxVerifiedKeys?: number | undefined;
}

/** What is known of a secret. */
type AuthenticationResult = VerifiedKey | RefusedLookup;

/** Authenticates secrets. It looks each one up once, and again only after its key, or a parent key, has changed. */
export class Authenticator {
  /** How secrets were checked. Whoever asks `findVerified` first counts what it finds. */
  readonly counts: CheckCounts;
  readonly #options: AuthenticatorOptions;
  readonly #verified: VerifiedKeys;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#verified = new VerifiedKeys(options);
    this.counts = options.counts;
  }

  /** How many secrets are remembered. */
  get remembered(): number {
    return this.#verified.size;
  }

  /** The key whose secret has this digest, if that is known without a query. Does not count as a use. */
  findVerified(digest: string): VerifiedKey | undefined {
    return this.#verified.get(digest, this.#options.clock);
  }

  /** Counts a use of a key. @returns when that was, in milliseconds since 1970 */
  countUse({ principal: { apiKey: key, secret } }: Pick<VerifiedKey, 'principal'>): number {
    return this.#options.activity.used(key, secret);
  }

  /**
   * Authenticates a secret without counting a use, at once if the store can tell without waiting. What holds requests
   * of its key is not looked at: that is what `BearerCheck` does.
   * @param address the client's, for the audit log
   * @param usedAt when its request was counted as a use before, in milliseconds since 1970
   * @throws KeysError STORE_…
   */
  confirm(secret: string, address?: string, usedAt?: number): Authentication | Promise<Authentication> {
    return this.#settle(this.#find(secret), address, usedAt);
  }

  /** Like `confirm`, of a secret that was accepted before, by its digest. @throws KeysError STORE_… */
  confirmDigest(digest: string, address?: string, usedAt?: number): Authentication | Promise<Authentication> {
    return this.#settle(this.#findBy(digest), address, usedAt);
  }

  /**
   * The key of a secret if that is accepted now, and until when the secret is, for somebody who was sent it (RFC 7662).
   * It counts as no use, and a refused one as no refused request.
   * @throws KeysError STORE_…
   */
  async introspect(secret: string): Promise<VerifiedKey | undefined> {
    const found = await this.#find(secret);
    if (!('principal' in found)) return undefined;
    const { apiKey: key, secret: which } = found.principal;
    const ends = [found.expiresAt, which === 'previous' ? key.rotation!.previousEndsAt : null];
    const known = ends.filter((end) => end !== null);
    return { principal: found.principal, expiresAt: known.length > 0 ? Math.min(...known) : null };
  }

  /**
   * Whether a secret with this digest is accepted now, and is that of a key. Counts as no use, and as no refused
   * request.
   * @throws KeysError STORE_…
   */
  async accepts(digest: string, keyId: string): Promise<boolean> {
    const found = await this.#findBy(digest);
    return 'principal' in found && found.principal.apiKey.id === keyId;
  }

  #settle(
    found: AuthenticationResult | Promise<AuthenticationResult>,
    address: string | undefined,
    usedAt: number | undefined,
  ): Authentication | Promise<Authentication> {
    const settle = (found: AuthenticationResult): Authentication =>
      'principal' in found ? { principal: found.principal } : this.#refuse(found, address, usedAt);
    return found instanceof Promise ? found.then(settle) : settle(found);
  }

  #find(secret: string): AuthenticationResult | Promise<AuthenticationResult> {
    return this.#findBy(digestSecret(secret), secret);
  }

  #findBy(digest: string, secret?: string): AuthenticationResult | Promise<AuthenticationResult> {
    const { repository, clock } = this.#options;
    const known = this.findVerified(digest);
    if (known) {
      this.counts.remembered += 1;
      return known;
    }
    // Read before the query, whose result may be older than a change that is made meanwhile.
    const revision = repository.revision();
    const settle = (found: Lookup) => (found.refused ? found : this.#accept(found, digest, revision));
    const found =
      secret === undefined ? lookUpDigest(digest, repository, clock()) : lookUp(secret, repository, clock(), digest);
    return found instanceof Promise ? found.then(settle) : settle(found);
  }

  /**
   * Records a request that was refused although its key is valid.
   * @param usedAt when it was counted as a use before, in milliseconds since 1970
   */
  noteRefusal(
    { apiKey: { id, name } }: Principal,
    reason: 'address' | 'audience' | 'limited',
    address: string | undefined,
    usedAt?: number,
  ): void {
    const { activity } = this.#options;
    activity.ended(id, reason === 'limited' ? 'limited' : 'forbidden', usedAt);
    activity.refused({ reason, actor: { kind: 'KEY', id, name }, apiKey: null, address });
  }

  /** Records that a route that only observes begins to, or lets a request pass that it would refuse. */
  noteObserved(route: string, reason: string, by?: { principal: Principal; missing: readonly Permission[] }): void {
    const key = by?.principal.apiKey;
    this.#options.activity.refused({
      reason,
      actor: key ? { kind: 'KEY', id: key.id, name: key.name } : { kind: 'REQUEST', id: null, name: null },
      apiKey: null,
      missing: by?.missing,
      route,
    });
  }

  /**
   * Records that a request lacked a permission; its observer is told which.
   * @param usedAt when it was counted as a use, in milliseconds since 1970
   */
  noteForbidden({ apiKey: { id } }: Principal, usedAt: number): void {
    this.#options.activity.ended(id, 'forbidden', usedAt);
  }

  #accept({ key, chain, secret }: AcceptedLookup, digest: string, revision: number | undefined): VerifiedKey {
    const { catalog, activity } = this.#options;
    this.counts.found += 1;
    const principal = principalOf(chain, catalog, { secret, observer: activity.createObserver(key) });
    const verified = { principal, expiresAt: chainExpiry(chain) };
    this.#verified.set(digest, revision, verified);
    return verified;
  }

  #refuse(
    { refused: reason, publicId, key }: RefusedLookup,
    address: string | undefined,
    usedAt: number | undefined,
  ): Authentication {
    const { activity } = this.#options;
    this.counts.refused[reason] += 1;
    if (key) activity.ended(key.id, 'refused', usedAt);
    activity.refused({
      reason,
      actor: { kind: 'REQUEST', id: null, name: publicId === undefined ? null : prefixOf(publicId) },
      apiKey: key ? { id: key.id, name: key.name } : null,
      address,
    });
    return { refused: reason, ...(publicId !== undefined && { publicId }) };
  }
}
