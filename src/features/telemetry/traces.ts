import type * as Api from '@opentelemetry/api';
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type * as Sdk from '@opentelemetry/sdk-trace';
import type { Sampler, TracerProvider } from '@opentelemetry/sdk-trace';
import { atPeriodEnd, type Endpoint, FailureLog, type RequestWatcher, type WatchedRequest } from '../../http/index.ts';
import { isPackageMissing, rethrow } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';
import { packageVersion } from '../../version.ts';
import { typeOf } from './request-log.ts';

/** The trace of a caller: the start of `traceparent` in any version of W3C Trace Context. */
interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  /** True if the caller has probably recorded it. */
  readonly isSampled: boolean;
}

const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;
/** The length in version 00; later ones can have more after a hyphen. */
const LENGTH = 55;

/** Reads `traceparent`; undefined if invalid or repeated. */
export function readTraceparent(header: string | undefined): Parent | undefined {
  if (header === undefined) return undefined;
  const [, version, traceId, spanId, flags] = TRACEPARENT.exec(header) ?? [];
  if (traceId === undefined || (version === '00' && header.length !== LENGTH)) return undefined;
  return { traceId, spanId: spanId!, isSampled: (Number.parseInt(flags!, 16) & 1) === 1 };
}

/** A `traceparent` of version 00. */
function formatTraceparent({ traceId, spanId, isSampled }: Parent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** The sampler in OpenTelemetry's variables. Of its packages, only the whole SDK for Node reads them. */
export function samplerOf(sdk: typeof Sdk, env: NodeJS.ProcessEnv, log: Log): Sampler {
  const name = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on';
  switch (name) {
    case 'always_on':
      return new sdk.AlwaysOnSampler();
    case 'always_off':
      return new sdk.AlwaysOffSampler();
    case 'traceidratio':
      return new sdk.TraceIdRatioBasedSampler(ratioIn(env, log));
    case 'parentbased_always_off':
      return new sdk.ParentBasedSampler({ root: new sdk.AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(ratioIn(env, log)) });
    case 'parentbased_always_on':
      break;
    default:
      log.warn({ sampler: name }, 'OTEL_TRACES_SAMPLER is not known: all requests are traced');
  }
  return new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() });
}

function ratioIn({ OTEL_TRACES_SAMPLER_ARG: text }: NodeJS.ProcessEnv, log: Log): number {
  const given = Number(text || 1);
  if (given >= 0 && given <= 1) return given;
  log.warn({ ratio: text }, 'OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: all requests are traced');
  return 1;
}

/** OpenTelemetry as its variables configure it. */
interface TracingSdk {
  readonly api: typeof Api;
  readonly provider: TracerProvider;
}

const PACKAGES = ['api', 'resources', 'sdk-trace', 'exporter-trace-otlp-proto'];
const INSTALL = `npm install ${PACKAGES.map((name) => `@opentelemetry/${name}`).join(' ')}`;

/**
 * Loads OpenTelemetry's packages, which are not dependencies, and starts them with the settings in the environment. If
 * that fails, the log says so, and requests are answered without traces.
 */
export async function startSdk(env: NodeJS.ProcessEnv, log: Log): Promise<TracingSdk | undefined> {
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] || env['OTEL_EXPORTER_OTLP_PROTOCOL'] || 'http/protobuf';
  if (protocol !== 'http/protobuf') {
    log.error({ protocol }, 'requests are not traced: the only supported OTLP protocol is http/protobuf');
    return undefined;
  }
  try {
    const packages = await Promise.all([
      import('@opentelemetry/api').catch(rethrow),
      import('@opentelemetry/resources').catch(rethrow),
      import('@opentelemetry/sdk-trace').catch(rethrow),
      import('@opentelemetry/exporter-trace-otlp-proto').catch(rethrow),
    ]);
    return start(packages, env, log);
  } catch (error) {
    const isMissing = isPackageMissing(error);
    const reason = isMissing ? { install: INSTALL } : { err: error };
    const remedy = isMissing ? ': OpenTelemetry is not installed where svc-api is' : '';
    log.error(reason, `requests are not traced${remedy}`);
    return undefined;
  }
}

type Packages = [
  typeof Api,
  typeof import('@opentelemetry/resources'),
  typeof Sdk,
  typeof import('@opentelemetry/exporter-trace-otlp-proto'),
];

function start([api, resources, sdk, { OTLPTraceExporter }]: Packages, env: NodeJS.ProcessEnv, log: Log): TracingSdk {
  const failures = new FailureLog(log, atPeriodEnd, 'traces were not sent');
  const ignore = () => {};
  const said = (message: string) => failures.add(new Error(message));
  const diagnostics = { error: said, warn: said, info: ignore, debug: ignore, verbose: ignore };
  // Otherwise, a second start, or one beside a host's own, would be reported as lost spans.
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
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(own).merge(configured),
    sampler: samplerOf(sdk, env, log),
    spanProcessors: [batches],
  });
  return { api, provider };
}

function numberIn(env: NodeJS.ProcessEnv, name: string, option: string): Record<string, number> {
  const value = Number(env[name] || Number.NaN);
  return value >= 0 ? { [option]: value } : {};
}

/** Maximum length of `tracestate`, in characters (W3C Trace Context, section 3.3.1.1). */
const MAX_STATE = 512;
/** The routes of endpoints with only one. */
const ROUTES: Partial<Record<Endpoint, string>> = { graphql: '/graphql', introspect: '/introspect', home: '/' };
/** Time to send pending data when stopping, in milliseconds. */
const FLUSH_MS = 3000;

interface StartedSpan {
  readonly span: Span;
  readonly context: Context;
}

/**
 * Creates a server span for each traced request, and one for the query of its key. The caller's trace continues, which
 * is harmless: it only sets the id to find the span by. A service behind a guard learns whether the request is traced.
 */
export class Traces implements RequestWatcher {
  readonly #sdk: TracingSdk;
  readonly #tracer: Tracer;

  constructor(sdk: TracingSdk) {
    this.#sdk = sdk;
    this.#tracer = sdk.provider.getTracer('svc-api', packageVersion());
  }

  began(request: WatchedRequest): void {
    const parent = readTraceparent(request.head.header('traceparent'));
    const begun = this.#begin(request, parent);
    const isTraced = begun.span.isRecording();
    if (isTraced) request.traced = begun;
    // A caller that requests no trace has told the service so, too.
    if (request.endpoint !== 'guard' || (!isTraced && parent?.isSampled === false)) return;
    const { traceId, spanId, traceState } = begun.span.spanContext();
    // An untraced request has no span of its own, so pass the caller's on.
    const passed = isTraced || !parent ? { traceId, spanId } : parent;
    request.trace = headersOf({ ...passed, isSampled: isTraced }, traceState?.serialize());
  }

  ended(request: WatchedRequest): void {
    const begun = request.traced as StartedSpan | undefined;
    if (!begun) return;
    const { span, context } = begun;
    const { storeTime, status = 0 } = request;
    if (storeTime) {
      const asked = this.#tracer.startSpan('store find key', { startTime: at(storeTime.from) }, context);
      asked.end(at(storeTime.to));
    }
    span.setAttributes(attributesOf(request));
    if (status >= 500) span.setStatus({ code: this.#sdk.api.SpanStatusCode.ERROR });
    span.end(at(request.to));
  }

  unread(): void {}

  /** Sends pending data, within a short time. */
  async stop(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, FLUSH_MS)));
    await Promise.race([this.#sdk.provider.shutdown().catch(() => {}), late]);
    clearTimeout(timer);
  }

  #begin(request: WatchedRequest, parent: Parent | undefined): StartedSpan {
    const { api } = this.#sdk;
    const { method, endpoint, from } = request;
    const attributes: Attributes = { 'svc_api.endpoint': endpoint };
    if (method !== undefined) attributes['http.request.method'] = method;
    const route = ROUTES[endpoint];
    if (route !== undefined) attributes['http.route'] = route;
    const name = `${method ?? 'HTTP'} ${route ?? endpoint}`;
    const state = parent && stateOf(request);
    const remote = parent && {
      traceId: parent.traceId,
      spanId: parent.spanId,
      traceFlags: parent.isSampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE,
      isRemote: true,
      ...(state !== undefined && { traceState: api.createTraceState(state) }),
    };
    const caller = remote ? api.trace.setSpanContext(api.ROOT_CONTEXT, remote) : api.ROOT_CONTEXT;
    const span = this.#tracer.startSpan(name, { kind: api.SpanKind.SERVER, startTime: at(from), attributes }, caller);
    return { span, context: api.trace.setSpan(caller, span) };
  }
}

/** The caller's `tracestate`; undefined if missing or too long. */
function stateOf({ head }: WatchedRequest): string | undefined {
  const state = head.header('tracestate');
  return state === undefined || state.length > MAX_STATE ? undefined : state;
}

function headersOf(span: Parent, state: string | undefined): readonly string[] {
  const traceparent = ['traceparent', formatTraceparent(span)];
  return state ? [...traceparent, 'tracestate', state] : traceparent;
}

/** Attributes by the semantic conventions, where these have names. Excludes the URL, which can contain secrets. */
function attributesOf({ id, status, keyId, operation, errors, address, isCutOff }: WatchedRequest): Attributes {
  return {
    'svc_api.request.id': id,
    ...(status !== undefined && { 'http.response.status_code': status }),
    ...(status !== undefined && status >= 500 && { 'error.type': `${status}` }),
    ...(address !== undefined && { 'client.address': address }),
    ...(keyId !== undefined && { 'svc_api.key.id': keyId }),
    ...(operation && { 'graphql.operation.type': typeOf(operation) }),
    ...(operation?.name !== undefined && { 'graphql.operation.name': operation.name }),
    ...(errors > 0 && { 'svc_api.graphql.errors': errors }),
    ...(isCutOff && { 'svc_api.cut_off': true }),
  };
}

/** A time of `performance.now()` as milliseconds since 1970. */
function at(time: number): number {
  return performance.timeOrigin + time;
}
