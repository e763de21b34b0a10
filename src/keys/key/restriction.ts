import { formatList, isBudget, type Limit, type LimitUnit, parseLimits, splitLimit } from '../basics/index.ts';
import type { Catalog } from '../permissions/index.ts';
import { areWithin } from './allow-from.ts';
import { isFor } from './audience.ts';

type Defaults = Pick<Catalog, 'defaultLimits'>;

/** The rule of a field that restricts keys: which value allows more than another. */
export interface Restriction<Value> {
  /** Words about a restricted key, such as "is limited to 100/m". @param isShared whether it shares this with its child keys */
  readonly words: (value: NonNullable<Value>, isShared?: boolean) => string;
  /** A value by which keys with some values are restricted more than keys with others; undefined if they are not. */
  readonly closer: (
    values: readonly Value[],
    than: readonly Value[],
    defaults: Defaults,
  ) => NonNullable<Value> | undefined;
  /** The value that allows as much as both do; undefined if they have nothing in common. */
  readonly common: (now: Value, before: Value, defaults: Defaults) => Value | undefined;
  /** Words for a key that a restore leaves with its present value, as it is closer. */
  readonly kept: string;
}

/** A limit holds as close as another of the same unit that allows as much. */
export const limitRestriction: Restriction<readonly Limit[]> = {
  words: (limits, isShared) => `is limited to ${limits.join(', ')}${isShared ? ' together with its child keys' : ''}`,
  kept: 'keeps its stricter limits',
  closer: (values, than, { defaultLimits }) => {
    const counts = countsOf(than, defaultLimits);
    for (const [unit, count] of countsOf(values, defaultLimits))
      if (count < (counts.get(unit) ?? Infinity)) return [`${count}/${unit}`];
    return undefined;
  },
  common: (now, before, { defaultLimits }) => {
    const lowest = Array.from(countsOf([now, before], defaultLimits), ([unit, count]): Limit => `${count}/${unit}`);
    const closest = parseLimits(lowest).values;
    const budgets = closest.filter(isBudget);
    const isDefault =
      before.every(isBudget) && closest.join() === [...parseLimits(defaultLimits).values, ...budgets].join();
    return isDefault ? budgets : closest;
  },
};

/** Networks hold as close as those that they lie in. */
export const networkRestriction: Restriction<readonly string[] | null> = {
  words: (networks) => `may be used from ${formatList(networks, 'or')} alone`,
  kept: 'keeps its narrower networks',
  closer: (values, than) => {
    const allowed = given(than);
    return given(values).find((networks) => !allowed.some((others) => areWithin(others, networks)));
  },
  common: (now, before) => {
    if (!now || !before) return now ?? before;
    // Networks that overlap contain one another.
    const within = (some: readonly string[], others: readonly string[]) =>
      some.filter((network) => areWithin([network], others));
    const networks = [...new Set([...within(now, before), ...within(before, now)])];
    return networks.length > 0 ? networks : undefined;
  },
};

/** An address holds as close as those under it. */
export const audienceRestriction: Restriction<string | null> = {
  words: (audience) => `is for ${audience} alone`,
  kept: 'stays valid for its present address alone',
  closer: (values, than) => {
    const others = given(than);
    return given(values).find((audience) => !others.some((other) => isFor(audience, other)));
  },
  common: (now, before) => {
    if (now === null || before === null) return now ?? before;
    if (isFor(before, now)) return now;
    return isFor(now, before) ? before : undefined;
  },
};

/** The limits of a key: its own rates, or those of keys that have none, and its budgets. */
export function appliedLimits(limits: readonly Limit[], defaultLimits: readonly Limit[]): readonly Limit[] {
  return limits.every(isBudget) ? [...defaultLimits, ...limits] : limits;
}

/** The lowest count of each unit. */
function countsOf(lists: readonly (readonly Limit[])[], defaultLimits: readonly Limit[]): Map<LimitUnit, number> {
  const counts = new Map<LimitUnit, number>();
  for (const limits of lists)
    for (const limit of appliedLimits(limits, defaultLimits)) {
      const { count, unit } = splitLimit(limit);
      counts.set(unit, Math.min(count, counts.get(unit) ?? Infinity));
    }
  return counts;
}

function given<Value>(values: readonly Value[]): NonNullable<Value>[] {
  return values.filter((value): value is NonNullable<Value> => value != null);
}
