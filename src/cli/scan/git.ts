import { Buffer } from 'node:buffer';
import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { promisify } from 'node:util';
import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';
import { type OnUnreadable, pathIn } from './folder.ts';

/** Set by git for hooks; they would point our git at the hook's repository. */
const HOOK_VARIABLES = new Set(['GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_COMMON_DIR', 'GIT_PREFIX']);
const GIT = Buffer.from('.git');

/** Makes sure that a folder is in a git work tree. @throws CliError USAGE */
export async function requireWorkTree(folder: string): Promise<void> {
  try {
    const answer = await git(folder, ['rev-parse', '--is-inside-work-tree']);
    if (answer.toString().trim() === 'true') return;
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: Buffer | string };
    if (code === 'ENOENT')
      throw new CliError('USAGE', '--git needs git, which was not found. Install it, or leave --git out.');
    const [line = ''] = String(stderr).trim().split('\n');
    throw notInWorkTree(folder, ` (${printable(line, 300)})`);
  }
  throw notInWorkTree(folder, '');
}

/** The files below a folder that git does not ignore, including those of nested repositories. Links are skipped. */
export async function* filesInWorkTree(folder: Buffer, onUnreadable: OnUnreadable): AsyncGenerator<Buffer> {
  for (const name of await listedIn(folder, onUnreadable)) {
    const path = pathIn(folder, name);
    try {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat?.isFile()) yield path;
      // A nested repository: git lists its folder only.
      else if (stat?.isDirectory() && lstatSync(pathIn(path, GIT), { throwIfNoEntry: false }))
        yield* filesInWorkTree(path, onUnreadable);
    } catch (error) {
      onUnreadable(path, error);
    }
  }
}

async function listedIn(folder: Buffer, onUnreadable: OnUnreadable): Promise<Buffer[]> {
  try {
    const list = await git(folder.toString(), [
      'ls-files',
      '--cached',
      '--others',
      '--exclude-standard',
      '--deduplicate',
      '-z',
    ]);
    return namesIn(list);
  } catch (error) {
    onUnreadable(folder, error);
    return [];
  }
}

/** Splits a NUL-terminated list. */
function namesIn(list: Buffer): Buffer[] {
  const names: Buffer[] = [];
  for (let start = 0, end = list.indexOf(0); end >= 0; start = end + 1, end = list.indexOf(0, start))
    names.push(list.subarray(start, end));
  return names;
}

async function git(folder: string, args: readonly string[]): Promise<Buffer> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !HOOK_VARIABLES.has(name)));
  // A repository's own configuration may name a program as its file monitor: scanning must not run it.
  const { stdout } = await promisify(execFile)('git', ['-c', 'core.fsmonitor=false', '-C', folder, ...args], {
    encoding: 'buffer',
    env: { ...env, LC_ALL: 'C' },
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  return stdout;
}

function notInWorkTree(folder: string, reason: string): CliError {
  return new CliError(
    'USAGE',
    `--git: ${printable(folder, 300)} is not in a git work tree${reason}. Leave --git out to scan all files.`,
  );
}
