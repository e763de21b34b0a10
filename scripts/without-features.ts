import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FEATURES } from '../src/features/index.ts';
import { type Import, importsOf } from './imports.ts';

/** Tests of the core. Other folders have tests of the whole product. */
export const CORE_TESTS = 'test/{core,keys,store,http,graphql,cli,config,limits,remote}/**/*.test.ts';
/**
 * Tests of a feature use only the core and the features that it needs. Other combinations are tested in test/together.
 */
export const FEATURE_TESTS = 'test/features/**/*.test.ts';
/** Lists of features, of their identities, and of their names in the library. Each feature has its own lines there. */
export const LISTS: readonly string[] = ['index', 'identities', 'library'].map((list) => `src/features/${list}.ts`);

/** Features, and all that need one of them. */
export function withDependents(given: readonly string[]): string[] {
  const gone = new Set(given);
  // Each feature comes after those that it needs.
  for (const { name, needs = [] } of FEATURES) if (needs.some((needed) => gone.has(needed))) gone.add(name);
  return [...gone];
}

/** The folders that are deleted with a feature. */
export function foldersOf(feature: string): string[] {
  return [`src/features/${feature}`, `test/features/${feature}`];
}

/** Imports in the core, in other features and in the tests of both that lead into a deleted feature. */
export function importsInto(root: string, gone: readonly string[]): Import[] {
  const folders = gone.flatMap(foldersOf);
  const isGone = (path: string) => folders.some((folder) => path.startsWith(`${folder}/`));
  const files = new Set(
    globSync(['src/**/*.{ts,tsx}', CORE_TESTS, FEATURE_TESTS], { cwd: root })
      .map((path) => path.replaceAll('\\', '/'))
      .filter((path) => !isGone(path)),
  );
  const found: Import[] = [];
  for (const path of files)
    for (const each of importsFrom(root, path)) {
      if (isGone(each.to)) found.push(each);
      else if (/^(src|test|scripts)\/.*\.tsx?$/.test(each.to)) files.add(each.to);
    }
  return found.filter(({ from }) => !LISTS.includes(from));
}

const known = new Map<string, Import[]>();

function importsFrom(root: string, path: string): Import[] {
  const found = known.get(path) ?? importsOf(path, readFileSync(join(root, path), 'utf8'));
  known.set(path, found);
  return found;
}
