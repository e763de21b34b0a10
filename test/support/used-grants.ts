import type { OwnFeature } from '../../src/feature.ts';
import type { UsedGrant } from '../../src/keys/key/use.ts';

/** A feature that remembers which grants of keys were written as used. */
export class UsedGrants implements OwnFeature {
  readonly name = 'used-grants';
  readonly #byKey = new Map<string, Map<UsedGrant, number>>();
  readonly onKeys: OwnFeature['onKeys'] = {
    used: async (_, uses) => {
      for (const { id, permissions, lastUsedAt } of uses) {
        const known = this.#byKey.get(id) ?? new Map<UsedGrant, number>();
        for (const grant of permissions) known.set(grant, lastUsedAt ?? 0);
        this.#byKey.set(id, known);
      }
    },
  };

  /** The used grants of a key, in their order. */
  of(id: string): UsedGrant[] {
    return [...(this.#byKey.get(id)?.keys() ?? [])].toSorted();
  }
}
