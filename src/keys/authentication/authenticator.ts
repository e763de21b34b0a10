import { chainExpiry, type Principal, principalOf } from '../authorization/index.ts';
import type { Catalog, Permission } from '../permissions/index.ts';
import type { KeyRepository } from '../repository/index.ts';
import { digestSecret, prefixOf } from '../secret/index.ts';
import type { Activity } from './activity.ts';
import {
  type AcceptedLookup,
  type Authentication,
  type CheckCounts,
  type Lookup,
  lookUp,
  lookUpDigest,
  type RefusedLookup,
} from './look-up.ts';
import { type VerifiedKey, VerifiedKeys } from './verified-keys.ts';

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

/** The result for a secret. */
type AuthenticationResult = VerifiedKey | RefusedLookup;

/** Authenticates secrets. It looks each one up once, and again only after its key, or a parent key, has changed. */
export class Authenticator {
  /** How secrets were checked. Callers of `findVerified` count its results themselves. */
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

  /** The key whose secret has this digest, if it is known without a query. Does not count as a use. */
  findVerified(digest: string): VerifiedKey | undefined {
    return this.#verified.get(digest, this.#options.clock);
  }

  /** Counts a use of a key. @returns when that was, in milliseconds since 1970 */
  countUse({ principal: { apiKey: key, secret } }: Pick<VerifiedKey, 'principal'>): number {
    return this.#options.activity.used(key, secret);
  }

  /**
   * Authenticates a secret without counting a use, at once if the store can answer without waiting. Restrictions of
   * requests are not checked here, but by `BearerCheck`.
   * @param address the client's, for the audit log
   * @param usedAt when its request was counted as a use before, in milliseconds since 1970
   * @throws KeysError STORE_…
   */
  confirm(secret: string, address?: string, usedAt?: number): Authentication | Promise<Authentication> {
    return this.#settle(this.#find(secret), address, usedAt);
  }

  /** Like `confirm`, for the digest of a secret that was accepted before. @throws KeysError STORE_… */
  confirmDigest(digest: string, address?: string, usedAt?: number): Authentication | Promise<Authentication> {
    return this.#settle(this.#findBy(digest), address, usedAt);
  }

  /**
   * The key of a secret that is accepted now, and until when, for a recipient of the secret (RFC 7662). Counts neither
   * as a use nor as a refused request.
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
   * True if a secret with this digest is accepted now and belongs to the key. Counts neither as a use nor as a refused
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
    // Read before the query: a change made during the query may be missing from its result.
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

  /** Records that a route in observe mode starts, or lets a request pass that it would refuse. */
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
   * Records a request that lacked a permission; the observer records which permission.
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
