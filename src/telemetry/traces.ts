import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { Endpoint, RequestWatcher, WatchedRequest } from '../http/watched-request.ts';
import { packageVersion } from '../version.ts';
import { typeOf } from './request-lines.ts';
import { type Parent, readTraceparent, formatTraceparent } from './trace-context.ts';
import type { TracingSdk } from './tracing-sdk.ts';

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
