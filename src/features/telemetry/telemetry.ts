import type { MetricsOfKeys, OwnFeature, Telemetry, TelemetryOptions } from '../../feature.ts';
import { isInClear } from '../../http/listen-address.ts';
import type { RequestWatcher } from '../../http/index.ts';
import { isDebugged } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';
import type { Metrics } from './metrics.ts';
import type { MetricsServer } from './metrics-server.ts';
import { requestDebugLog, requestLog } from './request-log.ts';
import type { Traces } from './traces.ts';

/** Logs, metrics and traces of requests. */
export interface OpenTelemetry {
  readonly watchers: readonly RequestWatcher[];
  readonly metrics: Metrics | undefined;
  /** Sends pending data. */
  stop(): Promise<void>;
}

/** Loads only what is enabled. */
export async function openTelemetry({
  requestLog: isLogging,
  metrics: wanted,
  traces: isTracing,
  log,
  features,
}: Omit<TelemetryOptions, 'metrics'> & { metrics: boolean | { process: boolean } }): Promise<OpenTelemetry> {
  const metrics = wanted ? await openMetrics(wanted === true ? undefined : wanted, features, log) : undefined;
  const traces = isTracing ? await startTraces(log) : undefined;
  const requests = isLogging ? requestLog(log) : undefined;
  return {
    watchers: [isDebugged() ? requestDebugLog : undefined, requests, metrics?.requests, traces].filter(
      (watcher) => watcher !== undefined,
    ),
    metrics,
    stop: async () => traces?.stop(),
  };
}

/**
 * Starts logs, metrics and traces of a process. Loads only what is enabled.
 * @throws KeysError LISTEN_FAILED if the address for metrics is not available
 */
export async function startTelemetry({ metrics: place, ...options }: TelemetryOptions): Promise<Telemetry> {
  const opened = await openTelemetry({ ...options, metrics: place !== undefined });
  const server = place && (await startMetrics(opened.metrics!, place, options.log));
  if (server) warnIfOpen(server, options.log);
  return {
    ...opened,
    details: server ? { metrics: server.url } : {},
    stop: async () => {
      await Promise.all([server?.stop(), opened.stop()]);
    },
  };
}

/** Metrics of svc-api and of features. @throws KeysError FEATURE_INVALID */
async function openMetrics(
  of: { process: boolean } | undefined,
  features: readonly OwnFeature[],
  log: Log,
): Promise<Metrics> {
  const { Metrics } = await import('./metrics.ts');
  const opened = new Metrics(of, log);
  for (const { name, metrics = [], provides } of features) {
    opened.add(name, metrics);
    if (provides?.['metrics']) opened.addOver(name, (await provides['metrics']()) as MetricsOfKeys);
  }
  return opened;
}

async function startTraces(log: Log): Promise<Traces | undefined> {
  const { startSdk, Traces } = await import('./traces.ts');
  const sdk = await startSdk(process.env, log);
  return sdk && new Traces(sdk);
}

async function startMetrics(
  metrics: Metrics,
  place: Exclude<TelemetryOptions['metrics'], undefined>,
  log: Log,
): Promise<MetricsServer | undefined> {
  if (place === 'primary') {
    const { answerPrimary } = await import('./worker-metrics.ts');
    answerPrimary(metrics, log);
    return undefined;
  }
  const [{ serveMetrics }, { CONTENT_TYPE }] = await Promise.all([
    import('./metrics-server.ts'),
    import('./metrics.ts'),
  ]);
  return serveMetrics(place, { contentType: CONTENT_TYPE, scrape: () => metrics.text() });
}

/**
 * Serves the metrics of all workers, from the first process.
 * @throws KeysError LISTEN_FAILED if the address is not available
 */
export async function serveWorkerMetrics(place: { host: string; port: number }, log: Log): Promise<MetricsServer> {
  const [{ serveMetrics }, { CONTENT_TYPE }, { WorkerMetrics }] = await Promise.all([
    import('./metrics-server.ts'),
    import('./metrics.ts'),
    import('./worker-metrics.ts'),
  ]);
  const workers = new WorkerMetrics();
  const server = await serveMetrics(place, { contentType: CONTENT_TYPE, scrape: () => workers.scrape() });
  log.info({ metrics: server.url }, 'listening for scrapes');
  warnIfOpen(server, log);
  return server;
}

function warnIfOpen({ url }: MetricsServer, log: Log): void {
  if (isInClear(url))
    log.warn({ metrics: url }, 'anyone who can reach this address can read the metrics, without a key');
}
