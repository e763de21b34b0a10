import { type Actor, mayFor, OPERATOR } from '../authorization/index.ts';
import { KeysError } from '../basics/index.ts';
import { computeSkeleton, describeLikeness } from '../key/index.ts';
import type { KeyFinder } from '../repository/index.ts';

/** A new name that looks like other names without being equal, such as one with a Cyrillic letter. */
export interface ConfusableName {
  name: string;
  /** The names that it looks like, at least one. */
  others: string[];
}

/** Warnings about confusable names, a sentence each. */
export function warningsOf(confusable: readonly ConfusableName[]): string[] {
  return confusable.flatMap(({ name, others }) => others.map((other) => describeLikeness(name, other)));
}

/**
 * Compares new names with those of all keys, and with one another. The operator gets a warning; a key cannot create a
 * name that looks like another.
 * @param except the ids of keys whose names become free
 * @returns the new names that look like others
 * @throws KeysError NAME_CONFUSABLE for a key
 */
export async function findConfusableNames(
  caller: Actor,
  find: Pick<KeyFinder, 'findConfusable'>,
  names: readonly string[],
  except: ReadonlySet<string> = new Set(),
): Promise<ConfusableName[]> {
  const keys = (await find.findConfusable(names)).filter(({ id }) => !except.has(id));
  const seen = Map.groupBy(keys, ({ name }) => computeSkeleton(name));
  const confusable: ConfusableName[] = [];
  const earlier = new Map<string, string[]>();
  for (const name of names) {
    const skeleton = computeSkeleton(name);
    const holders = (seen.get(skeleton) ?? []).filter((key) => key.name !== name);
    const declared = earlier.get(skeleton) ?? [];
    const others = [...holders.map((key) => key.name), ...declared];
    if (others.length > 0) confusable.push({ name, others });
    const hidden = holders.some((key) => !mayFor(caller, 'READ', key));
    if (others.length > 0 && caller !== OPERATOR) throw confusableError(name, hidden ? undefined : others[0]);
    earlier.set(skeleton, [...declared, name]);
  }
  return confusable;
}

/** @param other the name of the other key, if the caller is allowed to read it */
function confusableError(name: string, other: string | undefined): KeysError {
  const what =
    other === undefined ? `The name "${name}" looks like that of another API key.` : describeLikeness(name, other);
  return new KeysError('NAME_CONFUSABLE', `${what} Choose another name.`);
}
