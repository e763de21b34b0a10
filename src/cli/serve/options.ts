import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';

/** Where to serve, in how many processes, and what each of them takes. */
export interface ServeOptions {
  host: string;
  port: number;
  count: number;
  limits: { connections?: number; connectionsPerAddress?: number };
  maxVerifiedKeys: number | undefined;
}

/** The flags of `serve`, as they were typed. */
interface ServeFlags {
  host: string | undefined;
  port: string | undefined;
  workers: string | undefined;
  'max-connections': string | undefined;
  'max-connections-per-address': string | undefined;
  'max-verified-keys': string | undefined;
}

/** Reads the flags, and the environment where a flag is missing. @throws CliError USAGE */
export function readOptions(flags: ServeFlags, env: NodeJS.ProcessEnv): ServeOptions {
  const port = readPort(flags.port, '--port') ?? readPort(env['SVC_API_PORT'] || undefined, 'SVC_API_PORT') ?? 4000;
  const host = readHost(flags.host) ?? (env['SVC_API_HOST'] || '127.0.0.1');
  const count = readNumber(flags.workers, '--workers', 256) ?? 1;
  const connections = readNumber(flags['max-connections'], '--max-connections', 1_000_000);
  const connectionsPerAddress = readNumber(
    flags['max-connections-per-address'],
    '--max-connections-per-address',
    1_000_000,
  );
  const limits = {
    ...(connections !== undefined && { connections }),
    ...(connectionsPerAddress !== undefined && { connectionsPerAddress }),
  };
  const maxVerifiedKeys = readNumber(flags['max-verified-keys'], '--max-verified-keys', 1_000_000);
  return { host, port, count, limits, maxVerifiedKeys };
}

function readPort(value: string | undefined, from: string): number | undefined {
  if (value === undefined) return undefined;
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(port <= 65_535))
    throw new CliError('USAGE', `${from} is "${value}", which is not a port. Give a number from 0 to 65535.`);
  return port;
}

function readNumber(value: string | undefined, flag: string, most: number): number | undefined {
  if (value === undefined) return undefined;
  const number = /^\d{1,7}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= 1 && number <= most))
    throw new CliError('USAGE', `${flag} is "${printable(value)}". Give a number from 1 to ${most}.`);
  return number;
}

function readHost(value: string | undefined): string | undefined {
  if (value !== undefined && value.trim() === '')
    throw new CliError('USAGE', '--host is empty. Give an address to listen on, such as 127.0.0.1.');
  return value;
}
