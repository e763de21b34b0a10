/** How much of a resource may be done, as people choose it before single actions. */
export interface AccessLevel {
  readonly name: 'None' | 'Read' | 'Write' | 'All';
  /** What it stands for, of what can be granted: each of the widest extent. */
  readonly actions: readonly string[];
}

/** Which verbs each level has. */
const LEVELS = [
  ['None', []],
  ['Read', ['READ']],
  ['Write', ['READ', 'CREATE', 'UPDATE']],
  ['All', ['READ', 'CREATE', 'UPDATE', 'DELETE']],
] as const;

/** The levels that differ from one another, of a resource of which these actions can be granted. */
export function levelsOf(grantable: readonly string[]): AccessLevel[] {
  const widest = (verb: string) => [`${verb}_ANY`, `${verb}_OWN`].find((action) => grantable.includes(action)) ?? [];
  const levels = LEVELS.map(([name, verbs]) => ({ name, actions: verbs.flatMap(widest) }));
  return levels.filter(({ actions }, index) => index === 0 || actions.length > levels[index - 1]!.actions.length);
}

/** The level of these actions; undefined where there is none that is just this. */
export function levelOf(actions: Iterable<string>, levels: readonly AccessLevel[]): AccessLevel | undefined {
  const given = [...actions];
  // Who may do it to any may do it to its own.
  const counted = given.filter((action) => !given.includes(action.replace(/_OWN$/, '_ANY')) || action.endsWith('_ANY'));
  return levels.find((level) => level.actions.toSorted().join() === counted.toSorted().join());
}

/** The choice of single actions. */
export const CUSTOM = 'custom';
/** The choice of nothing where something was granted. */
export const NOTHING = 'none';

/** The name of the field that has the level of a resource. */
export function accessField(resource: string): string {
  return `access.${resource}`;
}
