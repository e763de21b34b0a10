import type { Buffer } from 'node:buffer';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';

/** How long git may run in all, in milliseconds: an ignore rule can be made to take for ever. */
const LIMIT_MS = 60_000;
/** The only variables of git that are passed on: where the user's own configuration is. */
const KEPT = new Set(['GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM']);

/** The repository that git sees: never one that somebody else made. */
export interface GitFolders {
  gitDir: string;
  workTree: string;
}

/** Runs git, in all for a limited time. */
export class GitProgram {
  #remainingMs: number;

  constructor(limitMs = LIMIT_MS) {
    this.#remainingMs = limitMs;
  }

  /** Requires that git is installed. @throws CliError USAGE */
  async require(): Promise<void> {
    try {
      await promisify(execFile)('git', ['--version'], { cwd: '/' });
    } catch {
      throw new CliError('USAGE', '--git needs git, which was not found. Install it, or leave --git out.');
    }
  }

  /** Runs git on a repository. @returns its stdout, if its exit code is one of `exits` */
  async run(
    { gitDir, workTree }: GitFolders,
    args: readonly string[],
    { input = '', exits = [0] }: { input?: Buffer | string; exits?: readonly number[] } = {},
  ): Promise<Buffer> {
    if (this.#remainingMs <= 0) throw new Error('git took too long');
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_') || KEPT.has(name)),
    );
    const started = performance.now();
    const running = promisify(execFile)('git', ['-c', 'core.fsmonitor=false', ...args], {
      cwd: workTree,
      encoding: 'buffer',
      env: { ...env, LC_ALL: 'C', GIT_DIR: gitDir, GIT_WORK_TREE: workTree },
      maxBuffer: Number.POSITIVE_INFINITY,
      timeout: Math.ceil(this.#remainingMs),
      killSignal: 'SIGKILL',
    });
    running.child.stdin?.on('error', () => {}).end(input); // It may end before it has read all.
    try {
      return (await running).stdout;
    } catch (error) {
      return outputOf(error as GitFailure, exits);
    } finally {
      this.#remainingMs -= performance.now() - started;
    }
  }
}

interface GitFailure {
  code?: unknown;
  killed?: boolean;
  stdout: Buffer;
  stderr: Buffer;
}

function outputOf({ code, killed, stdout, stderr }: GitFailure, exits: readonly number[]): Buffer {
  if (killed) throw new Error('git took too long');
  if (typeof code === 'number' && exits.includes(code)) return stdout;
  const [line = ''] = String(stderr).trim().split('\n');
  throw new Error(printable(line, 300) || `git failed (${String(code)})`);
}
