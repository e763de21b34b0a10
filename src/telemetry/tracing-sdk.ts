import type * as Api from '@opentelemetry/api';
import type { TracerProvider } from '@opentelemetry/sdk-trace';
import { atPeriodEnd, FailureLog } from '../http/index.ts';
import type { Log } from '../log.ts';
import { packageVersion } from '../version.ts';
import { Sampling } from './sampling.ts';

/** OpenTelemetry as its variables configure it. */
export interface TracingSdk {
  readonly api: typeof Api;
  readonly provider: TracerProvider;
  /** Which requests are traced. Makes the ids of spans and traces, too. */
  readonly sampling: Sampling;
}

const PACKAGES = ['api', 'resources', 'sdk-trace', 'exporter-trace-otlp-proto'];
const INSTALL = `npm install ${PACKAGES.map((name) => `@opentelemetry/${name}`).join(' ')}`;

/**
 * Loads OpenTelemetry's own packages, which are no dependencies, and starts them as the environment says. Without them,
 * or where they cannot do that, the log says so, and nothing is traced: requests are answered all the same.
 */
export async function startSdk(env: NodeJS.ProcessEnv, log: Log): Promise<TracingSdk | undefined> {
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] || env['OTEL_EXPORTER_OTLP_PROTOCOL'] || 'http/protobuf';
  if (protocol !== 'http/protobuf') {
    log.error(
      { protocol },
      'requests are not traced: of the protocols of OTLP, traces are sent by http/protobuf alone',
    );
    return undefined;
  }
  try {
    return await load(env, log);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    const reason = isMissing ? { install: INSTALL } : { err: error };
    const remedy = isMissing ? ': OpenTelemetry is not installed where svc-api is' : '';
    log.error(reason, `requests are not traced${remedy}`);
    return undefined;
  }
}

async function load(env: NodeJS.ProcessEnv, log: Log): Promise<TracingSdk> {
  const [api, resources, sdk, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  const failures = new FailureLog(log, atPeriodEnd, 'traces were not sent');
  const ignore = () => {};
  const said = (message: string) => failures.add(new Error(message));
  const diagnostics = { error: said, warn: said, info: ignore, debug: ignore, verbose: ignore };
  // Otherwise a second start, or one beside a host's own, would be reported as spans that were not sent.
  api.diag.setLogger(diagnostics, { suppressOverrideMessage: true });
  const own = resources.resourceFromAttributes({ 'service.name': 'svc-api', 'service.version': packageVersion() });
  const configured = resources.detectResources({ detectors: [resources.envDetector] });
  const exporter = new OTLPTraceExporter();
  const batches = new sdk.BatchSpanProcessor({
    exporter,
    ...numberIn(env, 'OTEL_BSP_SCHEDULE_DELAY', 'scheduledDelayMillis'),
    ...numberIn(env, 'OTEL_BSP_EXPORT_TIMEOUT', 'exportTimeoutMillis'),
    ...numberIn(env, 'OTEL_BSP_MAX_QUEUE_SIZE', 'maxQueueSize'),
    ...numberIn(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 'maxExportBatchSize'),
  });
  const sampling = new Sampling(env, log);
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(own).merge(configured),
    // What is to be sampled is known before.
    sampler: new sdk.AlwaysOnSampler(),
    idGenerator: sampling,
    spanProcessors: [batches],
  });
  return { api, provider, sampling };
}

function numberIn(env: NodeJS.ProcessEnv, name: string, option: string): Record<string, number> {
  const value = Number(env[name] || Number.NaN);
  return value >= 0 ? { [option]: value } : {};
}
