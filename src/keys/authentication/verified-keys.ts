import type { Principal } from '../authorization/index.ts';
import { isInProgress } from '../key/index.ts';
import type { KeyRepository } from '../repository/index.ts';
import type { CheckCounts } from './look-up.ts';

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

interface VerifiedKeysOptions {
  repository: Pick<KeyRepository, 'revision' | 'keysChangedSince'>;
  /** Default: 100,000. */
  maxVerifiedKeys?: number | undefined;
  /** A number from 0 up to, but not including, 1. */
  random?: () => number;
  counts: Pick<CheckCounts, 'evicted'>;
}

/**
 * A cache of accepted secrets, by digest. A change of a key drops the secrets of that key and of its child keys. Only
 * secrets of the store are cached, so requests with made-up secrets can neither fill it nor evict entries.
 */
export class VerifiedKeys {
  readonly #changes: Pick<KeyRepository, 'revision' | 'keysChangedSince'>;
  readonly #maxEntries: number;
  readonly #random: () => number;
  readonly #counts: Pick<CheckCounts, 'evicted'>;
  /** The revision of the store that the entries are valid for. */
  #revision: number | undefined;
  readonly #entries = new Map<string, Entry>();
  readonly #list: Entry[] = [];
  /** For each key id, the entries with that key in their chain: one for most keys, or several. */
  readonly #byKey = new Map<string, Entry | Set<Entry>>();

  constructor({ repository, maxVerifiedKeys = MAX_VERIFIED_KEYS, random = Math.random, counts }: VerifiedKeysOptions) {
    this.#changes = repository;
    this.#maxEntries = maxVerifiedKeys;
    this.#random = random;
    this.#counts = counts;
  }

  /** The number of entries. */
  get size(): number {
    return this.#list.length;
  }

  /** The entry of a digest, if it is valid now and at the store's present revision. */
  get(digest: string, clock: () => number): VerifiedKey | undefined {
    if (!this.#isUpToDate()) return undefined;
    const entry = this.#entries.get(digest);
    if (!entry || (entry.expiresAt !== null && entry.expiresAt <= clock())) return undefined;
    const { apiKey: key, secret } = entry.principal;
    return secret === 'current' || isInProgress(key.rotation, clock()) ? entry : undefined;
  }

  /**
   * Caches an accepted secret, unless a key of its chain may have changed since.
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
    // Evicts at random: with eviction by insertion or use, keys that take turns would never be found.
    if (this.#list.length >= this.#maxEntries) {
      this.#drop(this.#list[Math.floor(this.#random() * this.#list.length)]);
      this.#counts.evicted += 1;
    }
    const entry = { ...verified, digest, position: this.#list.length };
    this.#entries.set(digest, entry);
    this.#list.push(entry);
    for (const { id } of keys) this.#link(id, entry);
  }

  /** Brings the entries to the store's present revision. Returns false if that is not known. */
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
