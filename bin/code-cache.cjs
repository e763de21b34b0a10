'use strict';

const { readFileSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { dirname, join, parse } = require('node:path');
const { Script } = require('node:vm');
const { crc32 } = require('node:zlib');

/** How old a cache may be before it is written again, with what was compiled since. */
const MAX_AGE_MS = 24 * 60 * 60 * 1000;
/** What follows V8's data: its CRC-32, which V8 does not check. */
const SUM_BYTES = 4;

/**
 * Requires a CommonJS file of ASCII characters, with the code that an earlier run compiled for it. Node's compile cache
 * has only what V8 compiles before the file runs, not the functions that are called then: compiling those takes longer
 * than all else. The cache is in the folder of Node's, if that is enabled. The file has `importModule` for `import()`.
 * @param use what the file is used for, as a file name: each use has a cache, with the functions that it needs. So has
 * each content of the file, by its CRC-32: V8 compares only the length
 * @returns the module's exports, and a function that writes the cache if it is missing or old: for the end of the run
 */
exports.requireCached = function requireCached(file, use) {
  const source = readFileSync(file);
  const folder = Module.getCompileCacheDir?.();
  const path = folder && join(folder, `${parse(file).name}-${use}-${crc32(source).toString(16)}`);
  const cachedData = path && readCache(path);
  const script = new Script(
    `(function (exports, require, module, __filename, __dirname, importModule) {${source.latin1Slice()}\n})`,
    { filename: file, cachedData },
  );
  const own = Object.assign(new Module(file), { filename: file, loaded: true });
  require.cache[file] = own;
  script.runInThisContext()(own.exports, Module.createRequire(file), own, file, dirname(file), importModule);
  const isUsed = cachedData !== undefined && !script.cachedDataRejected;
  const keepCode = () => {
    if (path && !(isUsed && isYoung(path))) writeCache(path, script);
  };
  return { exports: own.exports, keepCode };
};

/** `import()` for a script, where it is experimental. */
function importModule(specifier) {
  return import(specifier);
}

/** The code of a cache; undefined where it is missing or damaged. */
function readCache(path) {
  try {
    const bytes = readFileSync(path);
    const data = bytes.subarray(0, -SUM_BYTES);
    return bytes.readUInt32LE(data.length) === crc32(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

function isYoung(path) {
  return Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < MAX_AGE_MS;
}

/** Writes a cache as a whole: another process may be reading it. */
function writeCache(path, script) {
  const draft = `${path}.${process.pid}`;
  try {
    const data = script.createCachedData();
    const sum = Buffer.alloc(SUM_BYTES);
    sum.writeUInt32LE(crc32(data));
    writeFileSync(draft, Buffer.concat([data, sum]), { mode: 0o600 });
    renameSync(draft, path);
  } catch {
    // The cache only makes the start faster.
    rmSync(draft, { force: true });
  }
}
