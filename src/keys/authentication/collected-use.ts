import { sortYielding } from '../basics/index.ts';
import {
  type HourUse,
  type KeyUse,
  MAX_TOOLS,
  NO_REQUESTS,
  type Outcome,
  OUTCOMES,
  PERIOD_MS,
  ROUTE,
  startOf,
  TOOL,
  type UsedGrant,
} from '../key/index.ts';
import { PIECE_KEYS } from './pieces.ts';

/** Hours of a key kept apart while they cannot be written; later use counts for the last of them. */
const MAX_HOURS = 24;
/** How many grants of a key are collected before tools and routes are dropped: clients choose the names of tools. */
const MAX_GRANTS = 2 * MAX_TOOLS;

type CollectedHour = { -readonly [Field in keyof HourUse]: HourUse[Field] };

/** Made with a key's first request, and changed in place by the others. */
interface CollectedKeyUse extends Omit<KeyUse, 'permissions'> {
  permissions: Set<UsedGrant>;
  hours: CollectedHour[];
}

/** Usage of keys that waits to be written. */
export class CollectedUse {
  readonly #byId = new Map<string, CollectedKeyUse>();
  /** The usage of the latest request's key, which most often gets the next request, too. */
  #latest: CollectedKeyUse | undefined;
  #uses = 0;

  /** The number of keys with something to write. */
  get size(): number {
    return this.#byId.size;
  }

  /** The number of uses to write. */
  get uses(): number {
    return this.#uses;
  }

  /** @param now milliseconds since 1970 */
  addUse(id: string, secret: 'current' | 'previous', now: number): void {
    const use = this.#useOf(id);
    use.uses += 1;
    this.#uses += 1;
    use.lastUsedAt = now;
    if (secret === 'previous') use.previousLastUsedAt = now;
    hourOf(use, now).accepted += 1;
  }

  /** Counts a request that is no use of its key. @param now milliseconds since 1970 */
  addRequest(id: string, outcome: Outcome, now: number): void {
    hourOf(this.#useOf(id), now)[outcome] += 1;
  }

  /** Gives a request another outcome that was counted as accepted. @param usedAt when, in milliseconds since 1970 */
  changeOutcome(id: string, outcome: Outcome, usedAt: number): void {
    const use = this.#useOf(id);
    const hour = hourOf(use, usedAt);
    hour.accepted -= 1;
    hour[outcome] += 1;
    if (outcome !== 'limited') return;
    use.uses -= 1;
    this.#uses -= 1;
  }

  /** @param clock milliseconds since 1970; only read if the use itself was taken already */
  addGrant(id: string, grant: UsedGrant, clock: () => number): void {
    const use = this.#useOf(id);
    use.lastUsedAt ??= clock();
    const isName = grant.startsWith(TOOL) || grant.startsWith(ROUTE);
    if (use.permissions.size < MAX_GRANTS || !isName) use.permissions.add(grant);
  }

  /** The ids of the keys, in pieces for `take`. They are sorted, as neighbours share the pages of an index. */
  async pieces(): Promise<string[][]> {
    const ids = await sortYielding([...this.#byId.keys()], (one, other) => (one < other ? -1 : 1));
    return Array.from({ length: Math.ceil(ids.length / PIECE_KEYS) }, (_, index) =>
      ids.slice(index * PIECE_KEYS, (index + 1) * PIECE_KEYS),
    );
  }

  /** Removes the use of these keys, to be written. */
  take(ids: readonly string[]): KeyUse[] {
    this.#latest = undefined;
    return ids.flatMap((id) => {
      const use = this.#byId.get(id);
      this.#byId.delete(id);
      this.#uses -= use?.uses ?? 0;
      return use ? { ...use, permissions: [...use.permissions] } : [];
    });
  }

  /** Adds usage again that could not be written. Usage added since then is newer. */
  putBack(taken: readonly KeyUse[]): void {
    for (const { id, uses, lastUsedAt, previousLastUsedAt, permissions, hours } of taken) {
      const use = this.#useOf(id);
      use.uses += uses;
      this.#uses += uses;
      use.lastUsedAt ??= lastUsedAt;
      use.previousLastUsedAt ??= previousLastUsedAt;
      for (const permission of permissions) use.permissions.add(permission);
      for (const { start, ...counts } of hours) {
        const hour = hourOf(use, start);
        for (const outcome of OUTCOMES) hour[outcome] += counts[outcome];
      }
    }
  }

  #useOf(id: string): CollectedKeyUse {
    if (this.#latest?.id === id) return this.#latest;
    let use = this.#byId.get(id);
    if (!use) {
      use = { id, uses: 0, lastUsedAt: null, previousLastUsedAt: null, permissions: new Set(), hours: [] };
      this.#byId.set(id, use);
    }
    this.#latest = use;
    return use;
  }
}

/** The counts of the hour that a time is in. Most often, that is the last one. */
function hourOf({ hours }: CollectedKeyUse, time: number): CollectedHour {
  const last = hours.at(-1);
  if (last && time >= last.start && time < last.start + PERIOD_MS.HOUR) return last;
  const start = startOf('HOUR', time);
  const known = hours.find((hour) => hour.start === start) ?? (hours.length < MAX_HOURS ? undefined : last);
  if (known) return known;
  const hour = { start, ...NO_REQUESTS };
  hours.push(hour);
  return hour;
}
