import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** An entry of the lockfile, by the folder of a package. */
interface Locked {
  readonly dependencies?: Record<string, string>;
}

/**
 * The folders of the packages that this one depends on, of further ones, and of their dependencies, by the lockfile.
 */
export function dependenciesOf(root: string, more: readonly string[]): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  const found = new Set<string>();
  const add = (name: string, from: string): void => {
    const folder = resolve(name, from);
    if (found.has(folder)) return;
    found.add(folder);
    for (const each of Object.keys(packages[folder]!.dependencies ?? {})) add(each, folder);
  };
  /** Finds a package like Node: in the nearest `node_modules` that has it. */
  const resolve = (name: string, from: string): string => {
    const folder = join(from, 'node_modules', name);
    if (folder in packages) return folder;
    if (from === '') throw new Error(`The lockfile has no ${name}.`);
    return resolve(name, from.replace(/(^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, ''));
  };
  for (const name of [...Object.keys(packages['']!.dependencies!), ...more]) add(name, '');
  return [...found].toSorted();
}
