import type { Principal } from '../authorization/principal.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyRepository } from '../repository.ts';
import { findGrantable, type Grantable, type KeyPlace, nothingBecause } from './grantable.ts';
import {
  findPossibleChanges,
  KEY_CHANGES,
  type PossibleChange,
  type Refusal,
  findRefusal,
} from './possible-changes.ts';
import { refreshed } from './transactions.ts';

export interface PermittedChangesOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
}

/** Tells beforehand what an actor is permitted to do, as it is now. Nothing is written, and nothing counts as used. */
export class PermittedChanges {
  readonly #options: PermittedChangesOptions;

  constructor(options: PermittedChangesOptions) {
    this.#options = options;
  }

  /**
   * Tells of each of these keys which changes an actor is permitted to make now, by the rules of those changes; nothing
   * is written, and nothing counts as used.
   * @throws KeysError STORE_…
   */
  async possibleChanges(keys: readonly ApiKey[], actor: Principal): Promise<PossibleChange[][]> {
    const place = await this.#findPlace(actor, keys);
    const decided: PossibleChange[][] = [];
    for (const key of keys)
      decided.push(
        'refusal' in place
          ? KEY_CHANGES.map((change) => ({ change, refusal: place.refusal }))
          : await findPossibleChanges(place, key),
      );
    return decided;
  }

  /** What an actor may give to a key that it creates. @throws KeysError STORE_… */
  grantable(actor: Principal): Promise<Grantable> {
    return this.#grantable(actor);
  }

  /** What an actor may give to a key beside what that has. @throws KeysError STORE_… */
  grantableTo(key: ApiKey, actor: Principal): Promise<Grantable> {
    return this.#grantable(actor, key);
  }

  async #grantable(actor: Principal, key?: ApiKey): Promise<Grantable> {
    const place = await this.#findPlace(actor, key ? [key] : []);
    return 'refusal' in place ? nothingBecause(place.refusal) : findGrantable(place, key);
  }

  /** What changes are decided by, as far as several keys ask for the same once. */
  async #findPlace(actor: Principal, keys: readonly ApiKey[]): Promise<KeyPlace | { refusal: Refusal }> {
    const { repository, catalog, clock } = this.#options;
    const now = clock();
    let caller = actor;
    const refusal = await findRefusal(async () => {
      const { apiKey, secret } = actor;
      caller = await refreshed({ apiKey, secret }, repository, { catalog, now });
    });
    if (refusal) return { refusal };
    const creators = [...new Set(keys.flatMap(({ createdBy }) => createdBy ?? []))];
    const ancestors = creators.length > 0 ? await repository.findAncestors(creators) : new Map<string, ApiKey>();
    const counts = new Map<string, Promise<number>>();
    const countLive = (creator: string, at: number) => {
      const count = counts.get(creator) ?? repository.countLive(creator, at);
      counts.set(creator, count);
      return count;
    };
    return { caller, catalog, now, find: { ...repository, findAncestors: async () => ancestors, countLive } };
  }
}
