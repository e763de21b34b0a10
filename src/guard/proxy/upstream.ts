import * as http from 'node:http';
import * as https from 'node:https';
import { isIP } from 'node:net';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';

/** Where an upstream listens. */
export type UpstreamAddress =
  | { readonly protocol: 'http:' | 'https:'; readonly host: string; readonly port: number }
  | { readonly protocol: 'http:'; readonly socketPath: string };

/** A request as it is sent to the upstream. */
export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** How long an idle connection is kept: many servers close theirs after 5 seconds, and say so to nobody. */
const IDLE_MS = 4000;
/** The most that the headers of an answer may have, in bytes. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Parses the address of an upstream: `http://127.0.0.1:3000`, `https://grafana.internal`, `http+unix:///run/app.sock`.
 * @throws KeysError USAGE
 */
export function parseUpstream(text: string): UpstreamAddress {
  const url = URL.parse(text);
  const { protocol = '', hostname = '', port = '', pathname = '', username = '', password = '' } = url ?? {};
  if (username !== '' || password !== '') throw unusable('the upstream has a password in it, which every user can see');
  const socketPath = protocol === 'http+unix:' && hostname === '' && pathname !== '/' ? decoded(pathname) : undefined;
  if (socketPath !== undefined) return { protocol: 'http:', socketPath };
  if ((protocol !== 'http:' && protocol !== 'https:') || hostname === '') {
    throw unusable(`"${printable(text)}" is not the address of an upstream`);
  }
  if (url!.href !== `${url!.origin}/`) {
    throw unusable(`"${printable(text)}" has more than an address: paths are passed on as they are`);
  }
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { protocol, host, port: port === '' ? { 'http:': 80, 'https:': 443 }[protocol] : Number(port) };
}

/** Undefined if it is not percent-encoded UTF-8. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function unusable(problem: string): KeysError {
  const forms = 'http://127.0.0.1:3000, https://grafana.internal or http+unix:///run/app.sock';
  return new KeysError('USAGE', `${problem.replace(/^t/, 'T')}. Write it as ${forms}.`);
}

/** The Host header that an upstream expects by its address. */
export function hostOf(address: UpstreamAddress): string {
  if ('socketPath' in address) return 'localhost';
  const host = isIP(address.host) === 6 ? `[${address.host}]` : address.host;
  return address.port === { 'http:': 80, 'https:': 443 }[address.protocol] ? host : `${host}:${address.port}`;
}

/** Sends requests to an upstream, over connections that are kept. */
export class Upstream {
  readonly #options: https.RequestOptions;
  readonly #kept: http.Agent;
  readonly #single: http.Agent;

  /** @param maxConnections how many connections there may be at a time; further requests wait */
  constructor(address: UpstreamAddress, maxConnections: number) {
    const isTls = address.protocol === 'https:';
    const Agent = isTls ? https.Agent : http.Agent;
    const servername = 'host' in address && isIP(address.host) === 0 ? address.host : '';
    this.#options = {
      ...address,
      ...(isTls && { servername, rejectUnauthorized: true }),
      maxHeaderSize: MAX_HEADER_BYTES,
    };
    const shared = { keepAlive: true, maxTotalSockets: maxConnections };
    this.#kept = new Agent({ ...shared, timeout: IDLE_MS });
    this.#single = new Agent({ ...shared, maxFreeSockets: 0 });
  }

  /**
   * Opens a request. A kept connection may have been closed by the upstream at this very moment.
   * @param isNew whether it must have a connection of its own
   */
  open(request: UpstreamRequest, isNew: boolean): http.ClientRequest {
    const { request: send } = this.#options.protocol === 'https:' ? https : http;
    const sent = send({ ...this.#options, ...request, agent: isNew ? this.#single : this.#kept });
    // Of an answer, Node would drop the headers after the 1,000th.
    sent.maxHeadersCount = 0;
    return sent;
  }

  /** Closes all connections. */
  close(): void {
    this.#kept.destroy();
    this.#single.destroy();
  }
}
