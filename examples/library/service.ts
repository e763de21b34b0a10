import { createApp, listen, loadConfig, openKeys, openLog, startTelemetry } from 'svc-api';
import type { Config, CreateAppOptions, Log, RunningServer, ServiceApp } from 'svc-api';

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
  // Measures how long the key store takes.
  ...(telemetry.storeTimer && { timer: telemetry.storeTimer }),
});
telemetry.measure(keys);

const options: CreateAppOptions = { keys, config, log, console: true };
// A Hono app, to be served, or mounted in another app.
const app: ServiceApp = await createApp(options);
const server: RunningServer = await listen({
  app,
  host: '127.0.0.1',
  port: Number(process.env['PORT']),
  // Measure requests.
  watchers: telemetry.watchers,
});
log.info({ url: server.url }, 'listening');

process.once('SIGTERM', () => void stop());

/** Answers the requests that have arrived, then writes the last uses of keys. */
async function stop(): Promise<void> {
  await server.stop();
  await telemetry.stop();
  await keys.close();
}
