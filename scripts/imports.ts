import { posix } from 'node:path';

type Kind = 'import' | 'type' | 'dynamic';

/** An import of a file. */
export interface Import {
  from: string;
  /** A path from the root, or a package's name. */
  to: string;
  kind: Kind;
}

/** The imports of a file, in the order of their forms, without Node's own modules. */
export function importsOf(from: string, text: string): Import[] {
  const code = text.replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/(?<=^|\s)\/\/.*$/gm, '');
  const statements = code.matchAll(/^\s*(?:import|export)\s+(type\s)?([^;'"]*?)\s*from\s*['"]([^'"]+)['"]/gm);
  const found = [
    ...Array.from(statements, ([, type, names = '', to = '']): [string, Kind] => [
      to,
      type || hasTypesAlone(names) ? 'type' : 'import',
    ]),
    ...Array.from(code.matchAll(/^\s*import\s*['"]([^'"]+)['"]/gm), ([, to = '']): [string, Kind] => [to, 'import']),
    // An `import()` is dynamic if it is called for its module; in a type, the name of a type follows.
    ...Array.from(
      code.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)(\.[A-Z])?/g),
      ([, to = '', member]): [string, Kind] => [to, member ? 'type' : 'dynamic'],
    ),
  ];
  return found.filter(([to]) => !to.startsWith('node:')).map(([to, kind]) => ({ from, to: targetOf(from, to), kind }));
}

function hasTypesAlone(names: string): boolean {
  const items = /^\{(.*)\}$/s
    .exec(names)?.[1]
    ?.split(',')
    .map((item) => item.trim()) ?? [''];
  return items.filter(Boolean).length > 0 && items.filter(Boolean).every((item) => item.startsWith('type '));
}

function targetOf(from: string, to: string): string {
  if (to.startsWith('.')) return posix.join(posix.dirname(from), to);
  return to.split('/', to.startsWith('@') ? 2 : 1).join('/');
}

/** A cycle of a graph, from a node to that node again; empty without one. */
export function cycleIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (node: string, path: readonly string[]): string[] => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node];
    if (done.has(node)) return [];
    for (const next of graph.get(node) ?? []) {
      const cycle = visit(next, [...path, node]);
      if (cycle.length > 0) return cycle;
    }
    done.add(node);
    return [];
  };
  for (const node of graph.keys()) {
    const cycle = visit(node, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
