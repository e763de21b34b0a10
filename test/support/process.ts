import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const BIN = fileURLToPath(new URL('../../bin/run.js', import.meta.url));

export interface Finished {
  stdout: string;
  stderr: string;
  /** The exit code; null after a signal. */
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A path without a file, because the user who runs the tests can have a configuration. */
const NO_FOLDER = '/nonexistent/svc-api';

/** Environment variables that affect commands. */
const CLEARED = new Set([
  'SVC_API_DATABASE',
  'SVC_API_SERVER',
  'SVC_API_KEY',
  'SVC_API_CONFIG',
  'SVC_API_AUDIT_KEY',
  'SVC_API_NOTICES_SECRET',
  'SVC_API_HOST',
  'SVC_API_PORT',
  'SVC_API_SOCKET',
  'SVC_API_TLS_CERT',
  'SVC_API_TLS_KEY',
  'SVC_API_ACCEPT_CLOCK',
  'SVC_API_KEEP_ALIVE',
  'SVC_API_REQUEST_LOG',
  'SVC_API_METRICS_PORT',
  'SVC_API_METRICS_HOST',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_SDK_DISABLED',
  'LOG_LEVEL',
  'XDG_DATA_HOME',
  'FORCE_COLOR',
  'NO_COLOR',
  'CI',
  'DEBUG',
  'COLUMNS',
]);

/** The environment of this process, without variables that affect commands, plus the given ones. */
export function cleanEnv(env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !CLEARED.has(name));
  return { ...Object.fromEntries(inherited), XDG_CONFIG_HOME: NO_FOLDER, ...env };
}

/** Waits until a program exits, and collects its output. */
export function finished(child: ChildProcess): Promise<Finished> {
  const read = (stream: NodeJS.ReadableStream | null) => {
    const text = { all: '' };
    stream?.setEncoding('utf8').on('data', (chunk: string) => (text.all += chunk));
    return text;
  };
  const stdout = read(child.stdout);
  const stderr = read(child.stderr);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ stdout: stdout.all, stderr: stderr.all, code, signal }));
  });
}

/** Starts the built CLI in a process, with the Node that runs the tests. @param bin another build of it */
export function startCli(args: readonly string[], { env, ...options }: SpawnOptions = {}, bin = BIN): ChildProcess {
  return spawn(process.execPath, [bin, ...args], { stdio: ['ignore', 'pipe', 'pipe'], ...options, env: cleanEnv(env) });
}

/** Runs the built CLI, without a terminal. */
export function runCli(args: readonly string[], options: SpawnOptions = {}): Promise<Finished> {
  return finished(startCli(args, options));
}

/** Runs the built CLI with this input on stdin. */
export function runCliWithInput(
  input: string | Uint8Array,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<Finished> {
  const child = startCli(args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin?.on('error', () => {}); // It can exit before it reads all input.
  child.stdin?.end(input);
  return finished(child);
}
