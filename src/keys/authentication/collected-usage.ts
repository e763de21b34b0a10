import type { KeyUsage } from '../key/usage.ts';
import type { Permission } from '../permissions/catalog.ts';
import { sortInTurns } from '../turns.ts';

/** How many keys are written at once: neither their transaction nor making its parameters keeps others waiting. */
const PIECE_KEYS = 2000;

/** One for each key: it is made with the first use, and changed by the others. */
interface CollectedKeyUsage extends KeyUsage {
  lastUsedAt: number;
  permissions: Permission[];
}

/** How much keys were used, until that is taken to be written. */
export class CollectedUsage {
  readonly #byId = new Map<string, CollectedKeyUsage>();

  /** Of how many keys there is something to write. */
  get size(): number {
    return this.#byId.size;
  }

  /** @param now milliseconds since 1970 */
  addUse(id: string, secret: 'current' | 'previous', now: number): void {
    const usage = this.#usageOf(id, now);
    usage.uses += 1;
    usage.lastUsedAt = now;
    if (secret === 'previous') usage.previousLastUsedAt = now;
  }

  /** @param clock milliseconds since 1970; only read if the use itself was taken already */
  addPermission(id: string, permission: Permission, clock: () => number): void {
    const { permissions } = this.#byId.get(id) ?? this.#usageOf(id, clock());
    if (!permissions.includes(permission)) permissions.push(permission);
  }

  /** The ids of the keys, in pieces to be taken. They are sorted, as neighbours share the pages of an index. */
  async pieces(): Promise<string[][]> {
    const ids = await sortInTurns([...this.#byId.keys()], (one, other) => (one < other ? -1 : 1));
    return Array.from({ length: Math.ceil(ids.length / PIECE_KEYS) }, (_, index) =>
      ids.slice(index * PIECE_KEYS, (index + 1) * PIECE_KEYS),
    );
  }

  /** Removes the usage of these keys, to be written. */
  take(ids: readonly string[]): KeyUsage[] {
    return ids.flatMap((id) => {
      const usage = this.#byId.get(id);
      this.#byId.delete(id);
      return usage ?? [];
    });
  }

  /** Adds what was taken and could not be written. What was added since is later. */
  putBack(taken: readonly KeyUsage[]): void {
    for (const { id, uses, lastUsedAt, previousLastUsedAt, permissions } of taken) {
      const usage = this.#usageOf(id, lastUsedAt ?? 0);
      usage.uses += uses;
      usage.previousLastUsedAt ??= previousLastUsedAt;
      usage.permissions = [...new Set([...usage.permissions, ...permissions])];
    }
  }

  #usageOf(id: string, now: number): CollectedKeyUsage {
    let usage = this.#byId.get(id);
    if (!usage) {
      usage = { id, uses: 0, lastUsedAt: now, previousLastUsedAt: null, permissions: [] };
      this.#byId.set(id, usage);
    }
    return usage;
  }
}
