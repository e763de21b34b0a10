import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ChangesOptions } from './changes.ts';
import type { LoadOptions, LoadReport } from './load.ts';
import type { Row } from './rows.ts';

/** True if programs can be pinned to a core. */
export const isPinned = availableParallelism() > 1 && hasTaskset();
const SERVER_CORE = '0';
export const LOAD_CORE = '1';
/** All cores except the load generator's, for a server with several processes. */
export const OTHER_CORES = availableParallelism() > 2 ? `0,2-${availableParallelism() - 1}` : SERVER_CORE;

/** A running server. */
export interface StartedServer {
  port: number;
  /** Resident memory in bytes, including child processes. */
  memory: () => number;
  /** The CPU time of the server and its child processes, in seconds; NaN if unknown. */
  cpu: () => number;
  stop: () => Promise<void>;
}

/** Where a server logs, and its additional environment variables. */
export interface Surroundings {
  stderr?: number;
  env?: NodeJS.ProcessEnv;
}

/** Starts a row's server on the first core, and waits until it listens. */
export async function startServer(
  { server, mode, cores }: Row,
  folder: string,
  surroundings?: Surroundings,
): Promise<StartedServer> {
  const args = [folder, ...(mode === undefined ? [] : [mode])];
  const child = startNode(cores ?? SERVER_CORE, `servers/${server}.ts`, args, surroundings);
  child.stdin!.end();
  const exited = once(child, 'exit');
  for await (const line of createInterface(child.stdout!)) {
    const port = /^listening on (?:http:\/\/127\.0\.0\.1:)?(\d+)$/i.exec(line)?.[1];
    if (port === undefined) continue;
    const pid = child.pid!;
    return {
      port: Number(port),
      memory: () => residentMemory(pid),
      cpu: () => cpuTime(pid),
      stop: () => stop(child, exited),
    };
  }
  throw new Error(`The server ${server} ended before it listened.`);
}

/** Generates load from the second core. */
export async function load(options: LoadOptions): Promise<LoadReport> {
  const child = startNode(LOAD_CORE, 'load.ts', []);
  child.stdin!.end(JSON.stringify(options));
  let text = '';
  for await (const chunk of child.stdout!) text += chunk;
  return JSON.parse(text) as LoadReport;
}

/**
 * Makes a number of changes per second, from the load generator's core.
 * @returns a function that stops it and returns the changes per second
 */
export async function startChanges(options: ChangesOptions): Promise<() => Promise<number>> {
  const child = startNode(LOAD_CORE, 'changes.ts', [JSON.stringify(options)]);
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
  await lines.next();
  return async () => {
    child.stdin!.end();
    return Number((await lines.next()).value);
  };
}

function startNode(
  cores: string,
  file: string,
  args: readonly string[],
  { stderr, env }: Surroundings = {},
): ChildProcess {
  const [command, ...before] = onCore(cores, process.execPath, fileURLToPath(new URL(file, import.meta.url)));
  return spawn(command!, [...before, ...args], {
    stdio: ['pipe', 'pipe', stderr ?? 'inherit'],
    env: { ...process.env, NODE_ENV: 'production', LOG_LEVEL: 'error', ...env },
  });
}

/** A command, pinned to cores if possible. */
export function onCore(cores: string, ...command: string[]): string[] {
  return isPinned ? ['taskset', '-c', cores, ...command] : command;
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill('SIGKILL');
  await exited;
}

function residentMemory(pid: number): number {
  const sizes = execFileSync('ps', ['-o', 'rss=', '-p', familyOf(pid).join()], { encoding: 'utf8' });
  return sumOf(sizes.trim().split('\n').map(Number)) * 1024;
}

/** The CPU time of this process's ended child processes, in seconds; NaN if unknown. */
export function cpuTimeOfChildren(): number {
  try {
    return ticksOf('self', 13) / 100;
  } catch {
    return Number.NaN;
  }
}

/** CPU time of a process and its children, in seconds; NaN if unknown. */
function cpuTime(pid: number): number {
  try {
    return sumOf(familyOf(pid).map((one) => ticksOf(one, 11))) / 100;
  } catch {
    return Number.NaN;
  }
}

/**
 * The sum of two times, in hundredths of a second, since `ps` rounds to seconds.
 * @param first the index of the first one after the program's name, see proc_pid_stat(5)
 */
function ticksOf(pid: number | 'self', first: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return sumOf(fields.slice(first, first + 2).map(Number));
}

/** A process and its child processes; only itself if unknown. */
function familyOf(pid: number): number[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  const children = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => familyOf(Number(child))))];
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
