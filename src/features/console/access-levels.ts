/** A level of access to a resource, for people who do not choose single actions. */
export interface AccessLevel {
  readonly name: 'None' | 'Read' | 'Write' | 'All';
  /** Its actions among those that can be granted, each with the widest extent. */
  readonly actions: readonly string[];
}

/** The verbs of each level. */
const LEVELS = [
  ['None', []],
  ['Read', ['READ']],
  ['Write', ['READ', 'CREATE', 'UPDATE']],
  ['All', ['READ', 'CREATE', 'UPDATE', 'DELETE']],
] as const;

/** The distinct levels of a resource, given the actions that can be granted. */
export function levelsOf(grantable: readonly string[]): AccessLevel[] {
  const widest = (verb: string) => [`${verb}_ANY`, `${verb}_OWN`].find((action) => grantable.includes(action)) ?? [];
  const levels = LEVELS.map(([name, verbs]) => ({ name, actions: verbs.flatMap(widest) }));
  return levels.filter(({ actions }, index) => index === 0 || actions.length > levels[index - 1]!.actions.length);
}

/** The level with exactly these actions, if there is one. */
export function levelOf(actions: Iterable<string>, levels: readonly AccessLevel[]): AccessLevel | undefined {
  const given = [...actions];
  // ANY includes OWN.
  const counted = given.filter((action) => !given.includes(action.replace(/_OWN$/, '_ANY')) || action.endsWith('_ANY'));
  return levels.find((level) => level.actions.toSorted().join() === counted.toSorted().join());
}

/** Value for choosing single actions. */
export const CUSTOM = 'custom';
/** Value for removing everything that was granted. */
export const NOTHING = 'none';

/** Field name for the level of a resource. */
export function accessField(resource: string): string {
  return `access.${resource}`;
}
