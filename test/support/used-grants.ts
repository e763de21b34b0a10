import type { OwnFeature } from '../../src/feature.ts';
import type { UsedGrant } from '../../src/keys/key/use.ts';

/** A feature that remembers which grants of keys were written as used. */
export class UsedGrants implements OwnFeature {
  readonly name = 'used-grants';
  readonly #byKey = new Map<string, Set<UsedGrant>>();
  readonly onKeys: OwnFeature['onKeys'] = {
    used: async (_, uses) => {
      for (const { id, permissions } of uses) {
        if (permissions.length === 0) continue;
        const known = this.#byKey.get(id) ?? new Set<UsedGrant>();
        for (const grant of permissions) known.add(grant);
        this.#byKey.set(id, known);
      }
    },
  };

  /** The used grants of a key, in their order. */
  of(id: string): UsedGrant[] {
    return [...(this.#byKey.get(id) ?? [])].toSorted();
  }
}
