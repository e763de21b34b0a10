import { formatList, isBudget, type Limit, type LimitUnit, parseLimits, splitLimit } from '../basics/index.ts';
import type { Catalog } from '../permissions/index.ts';
import { areWithin } from './allow-from.ts';
import { isFor } from './audience.ts';

type Defaults = Pick<Catalog, 'defaultLimits'>;

/** The rule of a field that restricts keys: which of two values allows more. */
export interface Restriction<Value> {
  /**
   * Words for a restricted key, such as "is limited to 100/m".
   * @param isShared true if its child keys share the restriction
   */
  readonly words: (value: NonNullable<Value>, isShared?: boolean) => string;
  /** A value that restricts keys with some values more than keys with others; undefined if none does. */
  readonly closer: (
    values: readonly Value[],
    than: readonly Value[],
    defaults: Defaults,
  ) => NonNullable<Value> | undefined;
  /** The value that allows everything that both allow; undefined if they have nothing in common. */
  readonly common: (now: Value, before: Value, defaults: Defaults) => Value | undefined;
  /** Words for a key that a restore leaves with its present value, because it is stricter. */
  readonly kept: string;
}

/** A limit is at least as strict as another of the same unit if it allows no more. */
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

/** A network is at least as strict as the networks that contain it. */
export const networkRestriction: Restriction<readonly string[] | null> = {
  words: (networks) => `can be used only from ${formatList(networks, 'or')}`,
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

/** An address is at least as strict as the addresses below it. */
export const audienceRestriction: Restriction<string | null> = {
  words: (audience) => `is valid only for ${audience}`,
  kept: 'stays valid only for its present address',
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

/** The limits that apply to a key: its own rates, or the default ones if it has none, and its budgets. */
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
