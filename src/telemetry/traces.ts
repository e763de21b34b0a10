import { randomFillSync } from 'node:crypto';
import type * as Api from '@opentelemetry/api';
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { TracerProvider } from '@opentelemetry/sdk-trace';
import { atPeriodEnd, type Endpoint, FailureLog, type RequestWatcher, type WatchedRequest } from '../http/index.ts';
import { isPackageMissing, rethrow } from '../keys/basics/index.ts';
import type { Log } from '../log.ts';
import { packageVersion } from '../version.ts';
import { typeOf } from './request-log.ts';

/** What a caller says of its trace: the head of `traceparent` in any version of W3C Trace Context. */
interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the caller may have recorded it. */
  readonly isSampled: boolean;
}

const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;
/** The length in version 00; later ones may have more behind a hyphen. */
const LENGTH = 55;

/** Reads `traceparent`; undefined for what is none, or for several. */
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

/** One more than any word of 32 bits. */
const ALL = 2 ** 32;
const POOL_WORDS = 1024;
const ROOTS: ReadonlySet<string> = new Set(['always_on', 'always_off', 'traceidratio']);

/**
 * Which requests are traced, as the samplers of OpenTelemetry's specification have it. That is decided before anything
 * is made for a request: its own samplers want the span's name, its attributes and a context.
 */
export class Sampling {
  /** Traces are taken where the words of their ids make less, together: as its sampler for Node counts. */
  readonly #bound: number;
  readonly #isParentBased: boolean;
  readonly #pool = new Uint32Array(POOL_WORDS);
  #drawn = POOL_WORDS;
  /** The id of the trace that was taken, and that begins now. */
  #traceId: string | undefined;

  constructor(env: NodeJS.ProcessEnv, log: Log) {
    const name = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on';
    const root = name.replace(/^parentbased_/, '');
    const isKnown = ROOTS.has(root);
    if (!isKnown) log.warn({ sampler: name }, 'OTEL_TRACES_SAMPLER is not known: all requests are traced');
    this.#isParentBased = !isKnown || root !== name;
    const ratio = root === 'always_off' ? 0 : root === 'traceidratio' ? ratioIn(env, log) : 1;
    this.#bound = ratio === 1 ? ALL : Math.floor(ratio * (ALL - 1));
  }

  /** Whether a request is traced. @param parent undefined where it has no caller with a trace */
  takes(parent: Parent | undefined): boolean {
    if (parent && this.#isParentBased) return parent.isSampled;
    if (this.#bound === ALL) return true;
    if (this.#bound === 0) return false;
    if (parent) return foldTraceId(parent.traceId) < this.#bound;
    const [first, second, third, fourth] = [this.#draw(), this.#draw(), this.#draw(), this.#draw()];
    const isTaken = (first ^ second ^ third ^ fourth) >>> 0 < this.#bound;
    if (isTaken) this.#traceId = hex(first) + hex(second) + hex(third) + hex(fourth);
    return isTaken;
  }

  /** The id of a trace that begins: of the one that was taken, if that was by its id. */
  generateTraceId(): string {
    const taken = this.#traceId;
    this.#traceId = undefined;
    return taken ?? this.generateSpanId() + this.generateSpanId();
  }

  generateSpanId(): string {
    // An id may not be zero.
    return hex(this.#draw()) + hex(this.#draw() || 1);
  }

  #draw(): number {
    if (this.#drawn === POOL_WORDS) {
      randomFillSync(this.#pool);
      this.#drawn = 0;
    }
    this.#drawn += 1;
    return this.#pool[this.#drawn - 1]!;
  }
}

function ratioIn({ OTEL_TRACES_SAMPLER_ARG: text }: NodeJS.ProcessEnv, log: Log): number {
  const given = Number(text || 1);
  if (given >= 0 && given <= 1) return given;
  log.warn({ ratio: text }, 'OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: all requests are traced');
  return 1;
}

/** The words of a trace's id, each added to the others without a carry. */
function foldTraceId(traceId: string): number {
  let folded = 0;
  for (let at = 0; at < traceId.length; at += 8) folded ^= Number.parseInt(traceId.slice(at, at + 8), 16);
  return folded >>> 0;
}

function hex(word: number): string {
  return word.toString(16).padStart(8, '0');
}

/** OpenTelemetry as its variables configure it. */
interface TracingSdk {
  readonly api: typeof Api;
  readonly provider: TracerProvider;
  /** Which requests are traced. Makes the ids of spans and traces, too. */
  readonly sampling: Sampling;
}

const PACKAGES = ['api', 'resources', 'sdk-trace', 'exporter-trace-otlp-proto'];
const INSTALL = `npm install ${PACKAGES.map((name) => `@opentelemetry/${name}`).join(' ')}`;

/**
 * Loads OpenTelemetry's own packages, which are not dependencies, and starts them as the environment says. Without
 * them, or where they cannot do that, the log says so, and nothing is traced: requests are answered all the same.
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
  typeof import('@opentelemetry/sdk-trace'),
  typeof import('@opentelemetry/exporter-trace-otlp-proto'),
];

function start([api, resources, sdk, { OTLPTraceExporter }]: Packages, env: NodeJS.ProcessEnv, log: Log): TracingSdk {
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

/** How much callers may send of what other tracing programs say, in characters (W3C Trace Context, section 3.3.1.1). */
const MAX_STATE = 512;
/** The routes of endpoints that have but one. */
const ROUTES: Partial<Record<Endpoint, string>> = { graphql: '/graphql', introspect: '/introspect', home: '/' };
/** How long what was not sent yet is waited for at the end, in milliseconds. */
const FLUSH_MS = 3000;

interface StartedSpan {
  readonly span: Span;
  readonly context: Context;
}

/**
 * Makes a span of each request that is to be traced, of kind server, and one of the time in which the store was asked
 * for its key. The caller's trace goes on, which is harmless: whoever it is, it only says under which number the span
 * is found. Of other requests nothing is made, but behind a guard they are told not to be traced.
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
    if (this.#sdk.sampling.takes(parent)) this.#begin(request, parent);
    else if (request.endpoint === 'guard') request.trace = this.#untraced(request, parent);
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

  /** Sends what was not sent yet, if that does not take long. */
  async stop(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, FLUSH_MS)));
    await Promise.race([this.#sdk.provider.shutdown().catch(() => {}), late]);
    clearTimeout(timer);
  }

  #begin(request: WatchedRequest, parent: Parent | undefined): void {
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
    const begun: StartedSpan = { span, context: api.trace.setSpan(caller, span) };
    request.traced = begun;
    if (endpoint !== 'guard') return;
    const { traceId, spanId, traceState } = span.spanContext();
    request.trace = headersOf({ traceId, spanId, isSampled: true }, traceState?.serialize());
  }

  /** What a service is told of a request without a span of ours; undefined for what its caller says. */
  #untraced(request: WatchedRequest, parent: Parent | undefined): readonly string[] | undefined {
    if (parent?.isSampled === false) return undefined;
    if (parent) return headersOf({ ...parent, isSampled: false }, stateOf(request));
    const { sampling } = this.#sdk;
    const none = { traceId: sampling.generateTraceId(), spanId: sampling.generateSpanId(), isSampled: false };
    return headersOf(none, undefined);
  }
}

/** What the caller's other tracing programs say; undefined for nothing, or too much. */
function stateOf({ head }: WatchedRequest): string | undefined {
  const state = head.header('tracestate');
  return state === undefined || state.length > MAX_STATE ? undefined : state;
}

function headersOf(span: Parent, state: string | undefined): readonly string[] {
  const traceparent = ['traceparent', formatTraceparent(span)];
  return state ? [...traceparent, 'tracestate', state] : traceparent;
}

/** By the semantic conventions, as far as they have names. No URL: it may hold what nobody should read. */
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
