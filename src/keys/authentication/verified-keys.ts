import type { ApiKey } from '../key/api-key.ts';
import type { Principal } from '../authorization/principal.ts';
import { isInProgress } from '../key/rotation.ts';
import { statusOf } from '../key/status.ts';

/** A secret that was found in the store, and who it makes of its bearer. */
export interface VerifiedKey {
  key: ApiKey;
  secret: 'current' | 'previous';
  principal: Principal;
}

/** How many secrets are remembered; each takes about 1 KB. */
const MAX_ENTRIES = 20_000;

/**
 * The secrets that were let in, by their digests, as long as the store is as it was. Only secrets that are in the store
 * get in here, so that nobody else can make it grow or push one out.
 */
export class VerifiedKeys {
  #revision: number | undefined;
  #entries = new Map<string, VerifiedKey>();

  /** Who stands behind a secret, if it is known to be let in at this time and this revision of the store. */
  get(digest: string, revision: number | undefined, now: number): VerifiedKey | undefined {
    if (revision === undefined || revision !== this.#revision) return undefined;
    const entry = this.#entries.get(digest);
    if (!entry || statusOf(entry.key, now) !== 'ACTIVE') return undefined;
    return entry.secret === 'current' || isInProgress(entry.key.rotation, now) ? entry : undefined;
  }

  /** Remembers a secret that was let in, as it was found at this revision. */
  set(digest: string, revision: number | undefined, entry: VerifiedKey): void {
    if (revision === undefined || revision < (this.#revision ?? 0)) return;
    if (revision !== this.#revision) this.#entries.clear();
    this.#revision = revision;
    // The one that came first leaves: a Map keeps that order, and no look-up has to change it.
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value!);
    this.#entries.set(digest, entry);
  }
}
