import { createApp } from '../../../src/service/create-app.ts';
import { DEFAULT_CONFIG } from '../../../src/config/config.ts';
import { readRequirements } from '../../../src/guard/access.ts';
import { serveGuard } from '../../../src/guard/guard.ts';
import { listen } from '../../../src/http/server.ts';
import { type Log, NO_LOG } from '../../../src/log.ts';
import type { Allow, Route } from '../../../src/routes/router.ts';
import { openTestKeys, type TestKeys } from '../keys.ts';
import { SITE } from './client.ts';
import { type ProxyName, type RunningProxy, type Setting, startProxy } from './examples.ts';
import { type Service, startService } from './service.ts';

/** A service behind a proxy that asks svc-api. */
export interface GuardedSite extends TestKeys {
  proxy: RunningProxy;
  service: Service;
  /** Stops svc-api alone. */
  stopSvcApi(): Promise<void>;
  stop(): Promise<void>;
}

/** Routes of the site, as its owner would declare them. */
const ROUTES: readonly Route[] = [
  routeOf('/public/**', { kind: 'open' }),
  { ...routeOf('/api/**', { kind: 'all', permissions: ['GRAFANA:UPDATE_ANY'] }), preflightOpen: true },
  { ...routeOf('/api/**', { kind: 'all', permissions: ['GRAFANA:READ_ANY'] }), methods: ['GET', 'HEAD'] },
  routeOf('/admin/**', { kind: 'all', permissions: ['GRAFANA:DELETE_ANY'] }),
];

function routeOf(path: string, allow: Allow): Route {
  return { host: SITE, path, allow, preflightOpen: false };
}

/** Starts the service, svc-api and the proxy, with the configuration of its example. */
export async function startGuardedSite(
  name: ProxyName,
  {
    by = 'permission',
    edits = {},
    log,
    repository,
  }: Pick<Setting, 'by' | 'edits'> & { log?: Log } & Pick<
      NonNullable<Parameters<typeof openTestKeys>[0]>,
      'repository'
    > = {},
): Promise<GuardedSite> {
  const test = await openTestKeys({ asServer: true, resources: ['GRAFANA'], ...(repository && { repository }) });
  const config = { ...DEFAULT_CONFIG, routes: by === 'routes' ? ROUTES : [] };
  const at = { host: '127.0.0.1', port: 0 };
  const service = await startService();
  const server =
    name === 'apache'
      ? await startGuard()
      : await listen({ app: await createApp({ keys: test.keys, config, ...(log && { log }) }), ...at });
  const ports = { svcApi: Number(new URL(server.url).port), service: service.port };
  const proxy = await startProxy(name, { ...ports, by, edits });
  const stopSvcApi = async () => {
    await server.stop(0);
  };
  return {
    ...test,
    proxy,
    service,
    stopSvcApi,
    async stop() {
      await proxy.stop();
      await Promise.all([service.stop(), stopSvcApi()]);
      await test.store.close();
    },
  };

  function startGuard() {
    const upstream = { protocol: 'http:' as const, host: '127.0.0.1', port: service.port };
    const permissions = by === 'routes' ? undefined : ['GRAFANA:READ_ANY'];
    const requirements = readRequirements({ permissions, anyKey: false }, { ...config, catalog: test.keys.catalog });
    const { credentials, trust } = config;
    const asked = { upstream, passCredential: false, rewriteHost: false, timeoutMs: 60_000 };
    return serveGuard(
      { ...asked, log: log ?? NO_LOG },
      { keys: test.keys, requirements, credentials, trust, failedCredentials: config.limits.failedCredentials },
      { ...at, keepAliveMs: 5000, watchers: [] },
    );
  }
}
