import type { ApiKey } from '../key/api-key.ts';
import type { Principal } from '../authorization/principal.ts';
import { isInProgress } from '../key/rotation.ts';
import { statusOf } from '../key/status.ts';

/** A key that was accepted by one of its secrets. */
export interface VerifiedKey {
  /** The key as it was found. */
  key: ApiKey;
  /** Which of its secrets was presented. */
  secret: 'current' | 'previous';
  /** The principal that the secret authenticates. */
  principal: Principal;
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
    if (revision === undefined || revision !== this.#revision) return undefined;
    const entry = this.#entries.get(digest);
    if (!entry || statusOf(entry.key, now) !== 'ACTIVE') return undefined;
    return entry.secret === 'current' || isInProgress(entry.key.rotation, now) ? entry : undefined;
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
