import cluster from 'node:cluster';
import { readFileSync, readlinkSync } from 'node:fs';
import { resolve } from 'node:path';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import { CliError } from '../errors.ts';
import { addedFlags, exclusiveFlags, inGroup } from '../input/key-flags.ts';
import { isCount, SERVER_NUMBERS, type ServerSettings } from '../../config/config.ts';
import type { CommandAddition } from '../../feature.ts';
import type { CertificateFiles } from '../../http/certificate.ts';
import type { ListenAddress } from '../../http/listen-address.ts';
import { KeysError, printable, withoutUndefined } from '../../keys/basics/index.ts';

const FIRST_DESCRIPTOR = 3;

/**
 * The socket that a service manager, such as systemd, has opened for this process, or for the first of its workers
 * (sd_listen_fds(3)); undefined if there is none.
 * @throws KeysError LISTEN_FAILED if there are several
 */
export function handedSocket({
  LISTEN_PID: pid,
  LISTEN_FDS: count,
}: NodeJS.ProcessEnv): (ListenAddress & { fd: number }) | undefined {
  const owner = cluster.isWorker ? process.ppid : process.pid;
  // Inherited variables about another process do not count.
  if (!count || Number(pid) !== owner) return undefined;
  if (count !== '1')
    throw new KeysError(
      'LISTEN_FAILED',
      `The server cannot start: ${count} sockets were passed to it (LISTEN_FDS), but it accepts only one. ` +
        'Give its socket unit a single ListenStream=, such as ListenStream=4000 for IPv4 and IPv6.',
    );
  return { fd: FIRST_DESCRIPTOR, socket: pathOfSocket(owner, FIRST_DESCRIPTOR) };
}

/** The path of a Unix socket by its descriptor; undefined for that of a port. */
function pathOfSocket(process: number, fd: number): string | undefined {
  try {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${process}/fd/${fd}`)) ?? [];
    // Num, RefCount, Protocol, Flags, Type, St, Inode, Path.
    const row = new RegExp(String.raw`^\S+: (?:\S+ +){5}${inode} (.+)$`, 'm');
    return row.exec(readFileSync('/proc/self/net/unix', 'utf8'))?.[1];
  } catch {
    return undefined; // There are such files on Linux alone.
  }
}

/** Text settings: the environment variable of each flag, and its allowed values. */
const TEXTS = {
  host: { variable: 'SVC_API_HOST', takes: 'an address to listen on, such as 127.0.0.1' },
  port: { variable: 'SVC_API_PORT', takes: 'a number from 0 to 65535' },
  socket: { variable: 'SVC_API_SOCKET', takes: 'a path, such as /run/svc-api/api.sock' },
  'tls-cert': { variable: 'SVC_API_TLS_CERT', takes: 'the path of a certificate in PEM' },
  'tls-key': { variable: 'SVC_API_TLS_KEY', takes: 'the path of its key in PEM' },
  'metrics-host': { variable: 'SVC_API_METRICS_HOST', takes: 'an address to listen on, such as 127.0.0.1' },
  'metrics-port': { variable: 'SVC_API_METRICS_PORT', takes: 'a number from 0 to 65535' },
} as const;

/** Flags as they were typed. */
type Typed<Names extends keyof typeof TEXTS> = { readonly [Name in Names]?: string | undefined };

/** A value and its source. */
interface Setting {
  value: string;
  /** The flag or the variable. */
  from: string;
  isTyped: boolean;
}

/** The setting from the flag, or else from the environment. @throws CliError USAGE for an empty flag */
function given<Name extends keyof typeof TEXTS>(
  name: Name,
  flags: Typed<Name>,
  env: NodeJS.ProcessEnv,
): Setting | undefined {
  const { variable, takes } = TEXTS[name];
  const value = flags[name];
  if (value?.trim() === '') throw new CliError('USAGE', `--${name} is empty. Give ${takes}.`);
  if (value !== undefined) return { value, from: `--${name}`, isTyped: true };
  const set = env[variable];
  return set?.trim() ? { value: set, from: variable, isTyped: false } : undefined;
}

/**
 * The address of the server. Flags take precedence over the environment, in which an inherited socket comes first.
 * @param defaultPort the port if none is set
 * @throws CliError USAGE; KeysError LISTEN_FAILED for several sockets
 */
export function readAddress(
  flags: Typed<'host' | 'port' | 'socket'>,
  env: NodeJS.ProcessEnv,
  defaultPort: number,
): ListenAddress {
  const host = given('host', flags, env);
  const port = given('port', flags, env);
  const socket = given('socket', flags, env);
  const handed = handedSocket(env);
  if (handed) {
    const flag = [host, port, socket].find((setting) => setting?.isTyped);
    if (flag) throw exclusiveFlags(flag.from, 'a socket from systemd (LISTEN_FDS)');
    return handed;
  }
  const others = [host, port].filter((other) => other !== undefined);
  const rival = others.find(({ isTyped }) => isTyped === socket?.isTyped);
  if (socket && rival) throw exclusiveFlags(socket.from, rival.from);
  if (socket && (socket.isTyped || others.length === 0)) return { socket: resolve(socket.value) };
  return {
    // In a URL, an IPv6 address has brackets.
    host: host?.value.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1',
    port: port ? readPort(port) : defaultPort,
  };
}

/** The certificate of the server; undefined for plain HTTP. @throws CliError USAGE */
export function readCertificateFiles(
  flags: Typed<'tls-cert' | 'tls-key'>,
  env: NodeJS.ProcessEnv,
  { socket }: ListenAddress,
): CertificateFiles | undefined {
  const cert = given('tls-cert', flags, env);
  const key = given('tls-key', flags, env);
  const either = cert ?? key;
  if (!either) return undefined;
  if (!cert || !key) {
    const missing = cert ? '--tls-key' : '--tls-cert';
    throw new CliError('USAGE', `${either.from} is given without ${missing}. TLS needs a certificate and its key.`);
  }
  if (socket !== undefined)
    throw new CliError('USAGE', `TLS is not supported on a Unix socket. Leave out ${cert.from} and ${key.from}.`);
  return { cert: resolve(cert.value), key: resolve(key.value) };
}

/** @throws CliError USAGE */
function readPort({ value, from }: Setting): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(port <= 65_535))
    throw new CliError(
      'USAGE',
      `${from} is "${printable(value)}", which is not a port. Give a number from 0 to 65535.`,
    );
  return port;
}

/** Settings for operators' view of a server besides its log. @throws CliError USAGE */
function readTelemetry(flags: ServeFlags, env: NodeJS.ProcessEnv) {
  const port = given('metrics-port', flags, env);
  return {
    /** True to log each request. */
    requestLog: flags['request-log'] || isOn('SVC_API_REQUEST_LOG', env['SVC_API_REQUEST_LOG']),
    /** The port of metrics; undefined for none. */
    metricsPort: port && readPort(port),
    /** True to trace requests. */
    traces: wantsTraces(env),
  };
}

/** The address of metrics; undefined if none is set. @throws CliError USAGE */
function readMetricsHost(flags: ServeFlags, env: NodeJS.ProcessEnv): string | undefined {
  const host = given('metrics-host', flags, env);
  if (host?.isTyped && !given('metrics-port', flags, env))
    throw new CliError('USAGE', '--metrics-host is given without --metrics-port.');
  return host?.value;
}

/** True if the variables of OpenTelemetry enable traces: by an endpoint, unless another variable disables them. */
function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return false;
  return Boolean(env['OTEL_EXPORTER_OTLP_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']);
}

function isOn(name: string, value = ''): boolean {
  if (value === '1' || value === '0' || value === '') return value === '1';
  throw new CliError('USAGE', `${name} is "${printable(value)}". Set it to 1 for on, or to 0 for off.`);
}

/** The address, the number of processes, and the settings that override the configuration. */
export type ServeOptions = ReturnType<typeof readOptions>;

/** Flags that features add to servers, to show what these do. */
interface TelemetryFlags {
  readonly 'request-log'?: boolean | undefined;
  readonly 'metrics-port'?: string | undefined;
  readonly 'metrics-host'?: string | undefined;
}

type ServeFlags = TelemetryFlags &
  Partial<Interfaces.InferredFlags<ReturnType<typeof servingFlags> & typeof clockFlag>>;

/**
 * Reads the flags, and the environment for missing ones.
 * @param port the default port
 * @throws CliError USAGE
 */
export function readOptions(flags: ServeFlags, env: NodeJS.ProcessEnv, port: number) {
  const address = readAddress(flags, env, port);
  const tls = readCertificateFiles(flags, env, address);
  const count = readNumber(flags.workers, '--workers', 256) ?? 1;
  const telemetry = readTelemetry(flags, env);
  const acceptsClock = flags['accept-clock'] || isOn('SVC_API_ACCEPT_CLOCK', env['SVC_API_ACCEPT_CLOCK']);
  return { address, tls, count, acceptsClock, settings: readSettings(flags, env), telemetry };
}

/** The tuning settings that are given, and no others, so that they can be laid over the configuration. */
function readSettings(flags: ServeFlags, env: NodeJS.ProcessEnv): ServerSettings {
  const { keepAlive } = SERVER_NUMBERS;
  const settings: ServerSettings = {
    keepAlive:
      readNumber(flags['keep-alive'], '--keep-alive', keepAlive) ??
      readNumber(env['SVC_API_KEEP_ALIVE'] || undefined, 'SVC_API_KEEP_ALIVE', keepAlive),
    metricsHost: readMetricsHost(flags, env),
  };
  return withoutUndefined(settings);
}

/** Reads a number from 1. @throws CliError USAGE */
export function readNumber(value: string | undefined, from: string, most: number): number | undefined {
  if (value === undefined) return undefined;
  const number = /^\d{1,7}$/.test(value) ? Number(value) : Number.NaN;
  if (!isCount(number, most))
    throw new CliError('USAGE', `${from} is "${printable(value)}". Give a number from 1 to ${most}.`);
  return number;
}

/**
 * The flags of servers: address, certificate, number of processes, and limits of each.
 * @param port the default port
 * @param additions those of features for the command
 */
export function servingFlags(port: number, additions: readonly CommandAddition[]) {
  return {
    ...inGroup('ADDRESS AND TLS', {
      host: Flags.string({
        description: 'Address to listen on. Default: SVC_API_HOST, or 127.0.0.1.',
        helpValue: '<address>',
      }),
      port: Flags.string({
        description: `Port; 0 picks a free one. Default: SVC_API_PORT, or ${port}.`,
        helpValue: '<port>',
      }),
      socket: Flags.string({
        description: 'Unix socket to listen on. Default: SVC_API_SOCKET.',
        helpValue: '<path>',
      }),
      'tls-cert': Flags.string({
        description: 'Certificate chain in PEM, to serve over TLS. Default: SVC_API_TLS_CERT, or plain HTTP.',
        helpValue: '<path>',
      }),
      'tls-key': Flags.string({
        description: 'Private key, in PEM. Default: SVC_API_TLS_KEY.',
        helpValue: '<path>',
      }),
    }),
    ...inGroup('OPERATION', {
      workers: Flags.string({
        description: 'Number of processes, up to 256. Default: 1.',
        helpValue: '<number>',
      }),
    }),
    'keep-alive': Flags.string({
      // It only tunes: help points to its place in svc-api.yaml instead.
      description: 'Seconds for which an idle connection is kept: "server.keepAlive" in svc-api.yaml.',
      helpValue: '<seconds>',
      hidden: true,
    }),
    ...addedFlags(additions),
  };
}

/** The flag of servers with a store. */
export const clockFlag = inGroup('OPERATION', {
  'accept-clock': Flags.boolean({
    description:
      "Start even if the machine's clock is behind the newest entry of the audit log. Default: SVC_API_ACCEPT_CLOCK, " +
      'or off.',
  }),
});
