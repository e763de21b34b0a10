import type { CertificateFiles } from '../../http/certificate.ts';
import type { ListenAddress } from '../../http/listen-address.ts';
import { printable } from '../../keys/text.ts';
import { isCount, SERVER_NUMBERS, type ServerSettings } from '../../server-settings.ts';
import { CliError } from '../errors.ts';
import { type AddressFlags, readAddress, readCertificateFiles } from './address.ts';
import { readMetricsHost, readTelemetry, type TelemetryFlags, type TelemetryOptions } from './telemetry-options.ts';

/** Where to serve, in how many processes, and what flags and environment say of what the configuration tunes. */
export interface ServeOptions {
  address: ListenAddress;
  /** Undefined where neither flags nor environment say so. */
  tls: CertificateFiles | undefined;
  count: number;
  settings: ServerSettings;
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
  const count = readNumber(flags.workers, '--workers', 256) ?? 1;
  const telemetry = readTelemetry(flags, env);
  return { address, tls, count, settings: readSettings(flags, env), telemetry };
}

/** What tunes the server: what is said, and nothing else, so that it can be laid over the configuration. */
function readSettings(flags: ServeFlags, env: NodeJS.ProcessEnv): ServerSettings {
  const { keepAlive, maxConnections, maxConnectionsPerAddress, maxVerifiedKeys } = SERVER_NUMBERS;
  const perAddress = '--max-connections-per-address';
  const settings: ServerSettings = {
    keepAlive:
      readNumber(flags['keep-alive'], '--keep-alive', keepAlive) ??
      readNumber(env['SVC_API_KEEP_ALIVE'] || undefined, 'SVC_API_KEEP_ALIVE', keepAlive),
    maxConnections: readNumber(flags['max-connections'], '--max-connections', maxConnections),
    maxConnectionsPerAddress: readNumber(flags['max-connections-per-address'], perAddress, maxConnectionsPerAddress),
    maxVerifiedKeys: readNumber(flags['max-verified-keys'], '--max-verified-keys', maxVerifiedKeys),
    metricsHost: readMetricsHost(flags, env),
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

/** Reads a number from 1 on. @throws CliError USAGE */
export function readNumber(value: string | undefined, from: string, most: number): number | undefined {
  if (value === undefined) return undefined;
  const number = /^\d{1,7}$/.test(value) ? Number(value) : Number.NaN;
  if (!isCount(number, most))
    throw new CliError('USAGE', `${from} is "${printable(value)}". Give a number from 1 to ${most}.`);
  return number;
}
