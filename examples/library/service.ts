import { createApp, listen, loadConfig, openKeys, openLog, startTelemetry } from 'svc-api';
import type { Config, CreateAppOptions, Log, ServiceApp } from 'svc-api';

// An action of your own, which svc-api.yaml declares.
declare module 'svc-api' {
  interface OwnActions {
    PUBLISH: true;
  }
}

const config: Config = await loadConfig();
const log: Log = await openLog('info');
const telemetry = await startTelemetry({ metrics: true, log });

const { resources, actions, prefix, roles, limits, policy, consent, added } = config;
const keys = await openKeys({
  resources,
  actions,
  prefix,
  roles,
  defaultLimits: limits.default,
  policy,
  consent,
  added,
  ...(telemetry.storeTimer && { timer: telemetry.storeTimer }),
});
telemetry.measure(keys);

const options: CreateAppOptions = {
  keys,
  config,
  log,
  context: ({ principal }) => ({ mayPublish: principal.can('WIKI:PUBLISH') }),
};
// A Hono app with GraphQL and everything else of `svc-api serve`, to be served, or mounted in another app.
const app: ServiceApp = await createApp(options);
const { url } = await listen({
  app,
  host: '127.0.0.1',
  port: Number(process.env['PORT']),
  watchers: telemetry.watchers,
});
log.info({ url }, 'listening');
