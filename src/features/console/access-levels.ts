/** A level of access to a resource, for people who do not choose single actions. */
export interface AccessLevel {
  readonly name: 'None' | 'Read' | 'Write' | 'All';
  /** Its actions among those that can be granted, each with the widest extent. */
  readonly actions: readonly string[];
}

/** The verbs of each level. All has the actions of the installation as well. */
const LEVELS = [
  ['None', []],
  ['Read', ['READ']],
  ['Write', ['READ', 'CREATE', 'UPDATE']],
] as const;

/** The distinct levels of a resource, given the actions that can be granted. */
export function levelsOf(grantable: readonly string[]): AccessLevel[] {
  const widest = (verb: string) => [`${verb}_ANY`, `${verb}_OWN`].find((action) => grantable.includes(action)) ?? [];
  const rest = grantable.filter((action) => !isIncluded(action, grantable));
  const all = [...new Set([...['READ', 'CREATE', 'UPDATE', 'DELETE'].flatMap(widest), ...rest])];
  const levels: AccessLevel[] = [
    ...LEVELS.map(([name, verbs]) => ({ name, actions: verbs.flatMap(widest) })),
    { name: 'All', actions: all },
  ];
  return levels.filter(({ actions }, index) => index === 0 || actions.length > levels[index - 1]!.actions.length);
}

/** The level with exactly these actions, if there is one. */
export function levelOf(actions: Iterable<string>, levels: readonly AccessLevel[]): AccessLevel | undefined {
  const given = [...actions];
  const counted = given.filter((action) => !isIncluded(action, given));
  return levels.find((level) => level.actions.toSorted().join() === counted.toSorted().join());
}

/** True for `X_OWN` beside `X_ANY`, which includes it. */
function isIncluded(action: string, actions: readonly string[]): boolean {
  return action.endsWith('_OWN') && actions.includes(action.replace(/_OWN$/, '_ANY'));
}

/** Value for choosing single actions. */
export const CUSTOM = 'custom';
/** Value for removing everything that was granted. */
export const NOTHING = 'none';

/** Field name for the level of a resource. */
export function accessField(resource: string): string {
  return `access.${resource}`;
}
