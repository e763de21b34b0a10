'use strict';

const { lstatSync, mkdirSync, realpathSync } = require('node:fs');
const Module = require('node:module');
const { homedir } = require('node:os');
const { dirname, isAbsolute, join } = require('node:path');

/**
 * Enables Node's compile cache in `svc-api/compile-cache` of the user's cache folder (XDG Base Directory). Node runs
 * what is in a cache, so nobody else may be able to write there; its default, in the shared temporary folder, is open
 * to all. Without a safe folder there is no cache. `NODE_COMPILE_CACHE`, for which Node has enabled the cache already,
 * and `NODE_DISABLE_COMPILE_CACHE` apply as usual.
 */
exports.enableCompileCache = function enableCompileCache() {
  if (Module.enableCompileCache === undefined || Module.getCompileCacheDir() !== undefined) return;
  if (process.env.NODE_DISABLE_COMPILE_CACHE) return;
  // Windows has a temporary folder for each user.
  if (process.platform === 'win32') Module.enableCompileCache();
  else enableIn(() => join(cacheFolder(), 'svc-api', 'compile-cache'));
};

function enableIn(locate) {
  try {
    const folder = locate();
    ensurePrivate(folder, { mayBeSticky: false });
    Module.enableCompileCache(folder);
  } catch {
    // The cache only makes the start faster.
  }
}

function cacheFolder() {
  const folder = process.env.XDG_CACHE_HOME;
  return folder && isAbsolute(folder) ? folder : join(homedir(), '.cache');
}

/**
 * Makes sure, from the root down, that only this user and root can replace a folder or write in it. Missing folders are
 * created, each once the folder above it is known to be safe. Throws if that is not possible.
 */
function ensurePrivate(folder, { mayBeSticky = true } = {}) {
  const parent = dirname(folder);
  if (parent === '.') throw new Error(`${folder} is relative.`);
  if (parent !== folder) ensurePrivate(parent);
  const stat = lstatSync(folder, { throwIfNoEntry: false }) ?? create(folder);
  if (stat.uid !== 0 && stat.uid !== process.geteuid()) throw new Error(`${folder} belongs to another user.`);
  if (stat.isSymbolicLink()) return ensurePrivate(realpathSync(folder), { mayBeSticky });
  // In a sticky folder, such as /tmp, others cannot replace what is not theirs.
  const isSticky = mayBeSticky && (stat.mode & 0o1000) !== 0;
  if ((stat.mode & 0o022) !== 0 && !isSticky) throw new Error(`${folder} can be written by others.`);
}

function create(folder) {
  mkdirSync(folder, { mode: 0o700 });
  return lstatSync(folder);
}
