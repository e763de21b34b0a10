import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './process.ts';
import { skipUnlessCI } from './skip.ts';
import { tempFolder } from './temp.ts';

const MIGRATIONS = 'src/store/migrations';

/**
 * The sources of the last commit with the previous schema, in a folder of their own, with the packages of this one.
 * They are found by git, of which the test needs the whole history.
 */
export function previousSchema(context: Mocha.Context): { commit: string; bin: string } {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 28 });
  const lines = (...args: string[]) =>
    git(...args)
      .toString()
      .trim()
      .split('\n');
  const schemaOf = (commit: string) =>
    lines('ls-tree', '--name-only', commit, `${MIGRATIONS}/`).filter((path) => /\/\d{3}-[^/]+$/.test(path));
  const isWhole = (() => {
    try {
      return lines('rev-parse', '--is-shallow-repository')[0] === 'false';
    } catch {
      return false;
    }
  })();
  if (!isWhole) skipUnlessCI(context, 'it needs the whole history of the repository');
  const now = schemaOf('HEAD');
  const changes = lines('log', '--first-parent', '-m', '--format=%H', '--', MIGRATIONS);
  const commit = changes
    .map((change) => `${change}^`)
    .find((before) => {
      const then = schemaOf(before);
      // On a branch, another migration may have had the number that one has now.
      return then.length < now.length && then.every((path, index) => path === now[index]);
    })!;
  const folder = tempFolder();
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit) });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  // What pages need in browsers is built; the rest runs from the sources.
  mkdirSync(join(folder, 'dist'));
  symlinkSync(join(ROOT, 'dist/console'), join(folder, 'dist/console'));
  return { commit: lines('rev-parse', '--short', commit)[0]!, bin: join(folder, 'bin/dev.js') };
}
