import { resolve } from 'node:path';
import type { CertificateFiles } from '../../http/certificate.ts';
import type { ListenAddress } from '../../http/listen-address.ts';
import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';
import { exclusiveFlags } from '../input/exclusive-flags.ts';
import { handedSocket } from './handed-socket.ts';

/** The flags that say where to serve, and by which certificate, as they were typed. */
export interface AddressFlags {
  host: string | undefined;
  port: string | undefined;
  socket: string | undefined;
  'tls-cert': string | undefined;
  'tls-key': string | undefined;
}

/**
 * Where to serve. What is typed counts before the environment; of that, a socket that was handed over comes first.
 * @param defaultPort the port if neither says so
 * @throws CliError USAGE; KeysError LISTEN_FAILED for several sockets
 */
export function readAddress(flags: AddressFlags, env: NodeJS.ProcessEnv, defaultPort: number): ListenAddress {
  const host =
    typed('--host', flags.host, 'an address to listen on, such as 127.0.0.1') ??
    set('SVC_API_HOST', env['SVC_API_HOST']);
  const port = typed('--port', flags.port, 'a number from 0 to 65535') ?? set('SVC_API_PORT', env['SVC_API_PORT']);
  const socket =
    typed('--socket', flags.socket, 'a path, such as /run/svc-api/api.sock') ??
    set('SVC_API_SOCKET', env['SVC_API_SOCKET']);
  const handed = handedSocket(env);
  if (handed) {
    const flag = [host, port, socket].find((given) => given?.isTyped);
    if (flag) throw exclusiveFlags(flag.from, 'a socket that was handed over (LISTEN_FDS)');
    return handed;
  }
  const others = [host, port].filter((other) => other !== undefined);
  const rival = others.find(({ isTyped }) => isTyped === socket?.isTyped);
  if (socket && rival) throw exclusiveFlags(socket.from, rival.from);
  if (socket && (socket.isTyped || others.length === 0)) return { socket: resolve(socket.value) };
  return {
    // In a URL, an address of IPv6 has brackets.
    host: host?.value.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1',
    port: port ? readPort(port) : defaultPort,
  };
}

/** The certificate to serve by; undefined for plain HTTP. @throws CliError USAGE */
export function readCertificateFiles(
  flags: AddressFlags,
  env: NodeJS.ProcessEnv,
  { socket }: ListenAddress,
): CertificateFiles | undefined {
  const cert =
    typed('--tls-cert', flags['tls-cert'], 'the path of a certificate in PEM') ??
    set('SVC_API_TLS_CERT', env['SVC_API_TLS_CERT']);
  const key =
    typed('--tls-key', flags['tls-key'], 'the path of its key in PEM') ??
    set('SVC_API_TLS_KEY', env['SVC_API_TLS_KEY']);
  const given = cert ?? key;
  if (!given) return undefined;
  if (!cert || !key) {
    const missing = cert ? '--tls-key' : '--tls-cert';
    throw new CliError('USAGE', `${given.from} is given without ${missing}. TLS needs a certificate and its key.`);
  }
  if (socket !== undefined)
    throw new CliError('USAGE', `On a Unix socket, no TLS is spoken. Leave out ${cert.from} and ${key.from}.`);
  return { cert: resolve(cert.value), key: resolve(key.value) };
}

/** A value, and where it was given. */
export interface Given {
  value: string;
  /** The flag or the variable. */
  from: string;
  isTyped: boolean;
}

/**
 * What was typed for a flag.
 * @param wanted what the flag takes, for the error
 * @throws CliError USAGE if it is empty
 */
export function typed(from: string, value: string | undefined, wanted: string): Given | undefined {
  if (value?.trim() === '') throw new CliError('USAGE', `${from} is empty. Give ${wanted}.`);
  return value === undefined ? undefined : { value, from, isTyped: true };
}

/** What is set for a variable; undefined if it is empty. */
export function set(from: string, value: string | undefined): Given | undefined {
  return value ? { value, from, isTyped: false } : undefined;
}

/** @throws CliError USAGE */
export function readPort({ value, from }: Given): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(port <= 65_535))
    throw new CliError(
      'USAGE',
      `${from} is "${printable(value)}", which is not a port. Give a number from 0 to 65535.`,
    );
  return port;
}
