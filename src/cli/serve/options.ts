import type { CertificateFiles } from '../../http/certificate.ts';
import type { ListenAddress } from '../../http/listen-address.ts';
import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';
import { type AddressFlags, readAddress, readCertificateFiles } from './address.ts';
import { readTelemetry, type TelemetryFlags, type TelemetryOptions } from './telemetry-options.ts';

/** Where to serve, in how many processes, and what each of them takes. */
export interface ServeOptions {
  address: ListenAddress;
  /** Undefined where neither flags nor environment say so. */
  tls: CertificateFiles | undefined;
  keepAliveMs: number | undefined;
  count: number;
  limits: { connections?: number; connectionsPerAddress?: number };
  maxVerifiedKeys: number | undefined;
  telemetry: TelemetryOptions;
}

/** The flags of what serves, as they were typed. */
interface ServeFlags extends AddressFlags, TelemetryFlags {
  'keep-alive': string | undefined;
  workers: string | undefined;
  'max-connections': string | undefined;
  'max-connections-per-address': string | undefined;
  'max-verified-keys': string | undefined;
}

/**
 * Reads the flags, and the environment where a flag is missing.
 * @param port where to listen if neither says so
 * @throws CliError USAGE
 */
export function readOptions(flags: ServeFlags, env: NodeJS.ProcessEnv, port: number): ServeOptions {
  const address = readAddress(flags, env, port);
  const tls = readCertificateFiles(flags, env, address);
  const keepAlive =
    readNumber(flags['keep-alive'], '--keep-alive', 3600) ??
    readNumber(env['SVC_API_KEEP_ALIVE'] || undefined, 'SVC_API_KEEP_ALIVE', 3600);
  const keepAliveMs = keepAlive && keepAlive * 1000;
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
  const telemetry = readTelemetry(flags, env);
  return { address, tls, keepAliveMs, count, limits, maxVerifiedKeys, telemetry };
}

/** Reads a number from 1 on. @throws CliError USAGE */
export function readNumber(value: string | undefined, from: string, most: number): number | undefined {
  if (value === undefined) return undefined;
  const number = /^\d{1,7}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= 1 && number <= most))
    throw new CliError('USAGE', `${from} is "${printable(value)}". Give a number from 1 to ${most}.`);
  return number;
}
