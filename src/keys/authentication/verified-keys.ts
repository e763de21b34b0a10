import type { Principal } from '../authorization/principal.ts';
import { isInProgress } from '../key/rotation.ts';

/** A key that was accepted by one of its secrets. */
export interface VerifiedKey {
  /** The principal that the secret authenticates. */
  principal: Principal;
  /** When the first key of its chain expires, in milliseconds since 1970; null for never. */
  expiresAt: number | null;
}

/** Each entry takes about 1 KB. */
const MAX_ENTRIES = 20_000;

/**
 * A cache of accepted secrets, by digest, that is valid for one revision of the store. It only holds secrets of the
 * store, so requests with made-up secrets can neither fill it nor evict entries.
 */
export class VerifiedKeys {
  #revision: number | undefined;
  #entries = new Map<string, VerifiedKey>();

  /** The entry of a digest, if it is valid at this time and this revision of the store. */
  get(digest: string, revision: number | undefined, now: number): VerifiedKey | undefined {
    if (revision !== this.#revision) return undefined;
    const entry = this.#entries.get(digest);
    if (!entry || (entry.expiresAt !== null && entry.expiresAt <= now)) return undefined;
    const { key, secret } = entry.principal;
    return secret === 'current' || isInProgress(key.rotation, now) ? entry : undefined;
  }

  /** Caches a secret that was accepted at this revision of the store. */
  set(digest: string, revision: number | undefined, entry: VerifiedKey): void {
    if (revision === undefined || revision < (this.#revision ?? 0)) return;
    if (revision !== this.#revision) this.#entries.clear();
    this.#revision = revision;
    // Evicts the oldest entry: a Map keeps insertion order, which lookups need not update.
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value!);
    this.#entries.set(digest, entry);
  }
}
