#!/usr/bin/env node
import { existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { refuseUnsupportedNode } from './node-version.js';
import { standInForUser } from './stand-in-for-user.js';

refuseUnsupportedNode();
// By default, Node would open its inspector, which exposes all memory and runs any code it receives.
process.on('SIGUSR1', () => {});
standInForUser();
const program = join(import.meta.dirname, '../dist/cli/own-program.js');
// In a checkout, `npm ci` alone builds nothing.
if (!existsSync(program)) {
  process.stderr.write('Error: svc-api is not built yet. Run "npm run build" in its checkout.\n');
  process.exit(1);
}
enableCompileCache();
// Not awaited: when the reader of a pipe closes it early, a top-level await would exit with 13.
void import('../dist/cli/own-program.js').then(({ runOwnProgram }) => runOwnProgram(process.argv.slice(2)));

/**
 * Enables Node's compile cache in `svc-api/compile-cache` of the user's cache folder (XDG Base Directory). Node runs
 * the code in a cache, and its default, in the shared temporary folder, is open to all. Without a safe folder there is
 * no cache, which only slows the start.
 */
function enableCompileCache() {
  if (module.getCompileCacheDir() !== undefined || process.env.NODE_DISABLE_COMPILE_CACHE) return;
  const { XDG_CACHE_HOME: chosen } = process.env;
  try {
    // Windows has a temporary folder for each user.
    if (process.platform === 'win32') {
      module.enableCompileCache();
      return;
    }
    const folder = join(chosen && isAbsolute(chosen) ? chosen : join(homedir(), '.cache'), 'svc-api/compile-cache');
    mkdirPrivate(folder, { mayBeSticky: false });
    module.enableCompileCache(folder);
  } catch {
    // There is no safe folder.
  }
}

/**
 * Creates missing folders, each after checking the folder above it. Throws unless only this user and root can replace
 * the folder or write in it.
 */
function mkdirPrivate(folder, { mayBeSticky = true } = {}) {
  const parent = dirname(folder);
  if (parent === '.') throw new Error(`${folder} is relative.`);
  if (parent !== folder) mkdirPrivate(parent);
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) mkdirSync(folder, { mode: 0o700 });
  const stat = lstatSync(folder);
  if (stat.uid !== 0 && stat.uid !== process.geteuid()) throw new Error(`${folder} belongs to another user.`);
  if (stat.isSymbolicLink()) return mkdirPrivate(realpathSync(folder), { mayBeSticky });
  // In a sticky folder, such as /tmp, other users can replace only their own files.
  const isSticky = mayBeSticky && (stat.mode & 0o1000) !== 0;
  if ((stat.mode & 0o022) !== 0 && !isSticky) throw new Error(`${folder} can be written by others.`);
}
