import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type GuardOptions, type RunningGuard, serveGuard } from '../../../../src/features/guard/guard.ts';
import { always, type GuardRules, readUpstreams, type Upstreams } from '../../../../src/features/guard/access.ts';
import type { ServerOptions } from '../../../../src/http/server.ts';
import { Networks } from '../../../../src/keys/basics/networks.ts';
import type { Permission } from '../../../../src/keys/permissions/catalog.ts';
import { NO_LOG } from '../../../../src/log.ts';
import type { SentCredential, Upstream, UpstreamAddress } from '../../../../src/features/routes/index.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../../support/keys.ts';

type AllOptions = Omit<GuardOptions, 'maxConnections'> &
  Omit<GuardRules, 'upstreams'> &
  Pick<ServerOptions, 'watchers'> & {
    /** The upstream of requests without a route that names one. */
    upstream: UpstreamAddress;
    send: readonly SentCredential[];
    rewriteHost: boolean;
    passHeaders: readonly string[];
    ranges: boolean;
    /** The name of that upstream. */
    named: string | undefined;
    /** The upstreams that routes name. */
    upstreams: readonly Upstream[];
  };

/** A service behind a guard, and a key for it. */
export interface GuardedService extends TestKeys {
  /** The guard's URL, without a path. */
  url: string;
  guard: RunningGuard;
  upstreams: Upstreams;
  /** The service itself. */
  upstream: Server;
  /** The secret of a key with access. */
  secret: string;
  /** The header with that key. */
  authorization: string;
  /** Starts another guard for the same service and store. @returns its address */
  beside(options: Partial<AllOptions>, host?: string): Promise<string>;
  /** Stops the service and all its guards. */
  stop(): Promise<void>;
}

/** The permission that a guard of `startGuarded` requires. */
export const PERMISSION: Permission = 'DASHBOARD:READ_ANY';

/** Starts a service, and a guard in front of it. */
export async function startGuarded(
  service: RequestListener | Server,
  options: Partial<AllOptions> = {},
): Promise<GuardedService> {
  const open = await openTestKeys({ asServer: true });
  const upstream = typeof service === 'function' ? createServer(service) : service;
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const { port } = upstream.address() as AddressInfo;
  const running: RunningGuard[] = [];
  const used: Upstreams[] = [];
  const beside = async (others: Partial<AllOptions>, host = '127.0.0.1') => {
    const all: AllOptions = {
      keys: open.keys,
      upstream: { protocol: 'http:', host: '127.0.0.1', port },
      send: [],
      named: undefined,
      upstreams: [],
      requirements: always({ kind: 'all', permissions: [PERMISSION] }),
      credentials: ['bearer'],
      forwardCredential: false,
      rewriteHost: false,
      passHeaders: [],
      ranges: false,
      trust: new Networks(['127.0.0.0/8', '::1']),
      timeoutMs: 60_000,
      log: NO_LOG,
      ...options,
      ...others,
    };
    const { watchers = [] } = all;
    const { upstream: address, named: name, send, rewriteHost, passHeaders, ranges } = all;
    const otherwise = { name, address, send, rewriteHost, passHeaders, ranges };
    const upstreams = readUpstreams(all.upstreams, otherwise, undefined);
    const started = await serveGuard(all, { ...all, upstreams }, { host, port: 0, keepAliveMs: 5000, watchers });
    running.push(started);
    used.push(upstreams);
    return started.url;
  };
  const url = await beside({});
  const { secret } = await createPrincipal(open.keys, { name: 'Caller', permissions: [PERMISSION] });
  const stop = async () => {
    await Promise.all(running.map((started) => started.stop(0)));
    upstream.closeAllConnections();
    upstream.close();
    await open.store.close();
  };
  return {
    ...open,
    url,
    guard: running[0]!,
    upstreams: used[0]!,
    upstream,
    secret,
    authorization: `Authorization: Bearer ${secret}`,
    beside,
    stop,
  };
}
