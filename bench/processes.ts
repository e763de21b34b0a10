import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LoadOptions, LoadReport } from './load.ts';
import type { Row } from './rows.ts';

/** Whether programs can be pinned to a core. */
export const isPinned = availableParallelism() > 1 && hasTaskset();

/** A running server. */
export interface StartedServer {
  port: number;
  /** Resident memory, in bytes. */
  memory: () => number;
  /** The CPU time that it has used, in seconds; NaN if the system does not tell. */
  cpu: () => number;
  stop: () => Promise<void>;
}

/** Starts a row's server on the first core, and waits until it listens. */
export async function startServer({ server, mode }: Row, folder: string): Promise<StartedServer> {
  const child = startNode(0, [
    fileURLToPath(new URL(`servers/${server}.ts`, import.meta.url)),
    folder,
    ...(mode ? [mode] : []),
  ]);
  const exited = once(child, 'exit');
  for await (const line of createInterface(child.stdout!)) {
    const port = /^listening on (\d+)$/.exec(line)?.[1];
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

/** Sends requests from the second core. */
export async function load(options: LoadOptions): Promise<LoadReport> {
  const child = startNode(1, [fileURLToPath(new URL('load.ts', import.meta.url)), JSON.stringify(options)]);
  let text = '';
  for await (const chunk of child.stdout!) text += chunk;
  return JSON.parse(text) as LoadReport;
}

function startNode(core: number, args: readonly string[]): ChildProcess {
  const [command, ...before] = isPinned ? ['taskset', '-c', String(core), process.execPath] : [process.execPath];
  return spawn(command, [...before, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_ENV: 'production' },
  });
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill('SIGKILL');
  await exited;
}

function residentMemory(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1024;
}

/** Read from /proc, in hundredths of a second: `ps` rounds to seconds. */
/** The CPU time of the programs that this one has started and that have ended, in seconds; NaN if unknown. */
export function cpuTimeOfChildren(): number {
  return cpuTime('self', 13);
}

/** @param first the place of the user's time after the program's name: proc_pid_stat(5) */
function cpuTime(pid: number | 'self', first = 11): number {
  try {
    const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .split(') ')[1]!
      .split(' ')
      .slice(first, first + 2)
      .map(Number);
    return (user! + system!) / 100;
  } catch {
    return Number.NaN;
  }
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
