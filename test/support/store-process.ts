import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BIN, cleanEnv, finished } from './process.ts';

const CHILD = fileURLToPath(new URL('./store-child.ts', import.meta.url));

/**
 * Options for a child process that is not root, so that file modes apply. The folders above must be accessible to it.
 */
export const AS_NOBODY: SpawnOptions = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Starts a task of store-child.ts. */
export function startStoreChild(args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  return spawn(process.execPath, [CHILD, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: cleanEnv(), ...options });
}

/** Runs a task of store-child.ts and returns its report. */
export async function runStoreChild(args: readonly string[], options?: SpawnOptions): Promise<Record<string, unknown>> {
  const { stdout, stderr } = await finished(startStoreChild(args, options));
  if (stdout === '') throw new Error(`The child reported nothing: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** Runs the CLI with `ulimit -f`, which limits the size of files in KiB. */
export function runCliWithFileLimit(kibibytes: number, args: readonly string[]): ReturnType<typeof finished> {
  const script = `ulimit -f ${kibibytes}; exec "$@"`;
  const env = cleanEnv({ NODE_DISABLE_COMPILE_CACHE: '1' });
  return finished(
    spawn('bash', ['-c', script, 'bash', process.execPath, BIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env }),
  );
}
