/** The headings of verbs in their order. Further ones of plugins come after them. */
const GROUPS = ['Keys', 'Automation', 'Leaks', 'Applications', 'Store', 'Servers', 'Program'];
/** Verbs that come first under their heading. */
const FIRST = 'create list show update rotate disable enable delete'.split(' ');

/** A command from a manifest, with its place in the help. */
interface Listed {
  readonly id: string;
  readonly group?: unknown;
  readonly topic?: unknown;
  readonly aliases?: readonly string[];
}

/** Commands by heading. Those without one, and aliases, are left out. */
export function groupsOf<Of extends Listed>(commands: readonly Of[]): [group: string, commands: Of[]][] {
  const grouped = commands.filter(({ id, group, aliases = [] }) => typeof group === 'string' && !aliases.includes(id));
  // This code also runs on an unsupported Node, which has no Map.groupBy.
  const present = new Set(grouped.map(({ group }) => group as string));
  const others = [...present].filter((group) => !GROUPS.includes(group)).toSorted();
  const sorted = grouped.toSorted(byVerb);
  return [...GROUPS, ...others]
    .filter((heading) => present.has(heading))
    .map((heading) => [heading, sorted.filter(({ group }) => group === heading)]);
}

/** The groups as lines, for the help of a host, which lists verbs alphabetically. */
export function verbLines(commands: readonly Listed[]): string {
  return groupsOf(commands.filter(({ id }) => id.startsWith('apikey:')))
    .map(([group, all]) => `${group}: ${[...new Set(all.map(verbOf))].join(', ')}.`)
    .join('\n');
}

/** Topics that commands describe, because they have no command of their own. */
export function topicsOf(commands: readonly Listed[]): { name: string; description: string }[] {
  return commands.flatMap(({ id, topic }) =>
    typeof topic === 'string' ? [{ name: id.slice(0, id.lastIndexOf(':')), description: topic }] : [],
  );
}

function byVerb(one: Listed, other: Listed): number {
  return placeOf(one) - placeOf(other) || (one.id < other.id ? -1 : 1);
}

function placeOf(command: Listed): number {
  const place = FIRST.indexOf(verbOf(command));
  return place === -1 ? FIRST.length : place;
}

function verbOf({ id }: Listed): string {
  return id.replace(/^apikey:/, '').split(':', 1)[0]!;
}
