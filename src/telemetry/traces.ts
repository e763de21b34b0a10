import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { Received } from '../http/client-address.ts';
import type { Endpoint } from '../http/endpoints.ts';
import type { RequestWatcher, WatchedRequest } from '../http/watched-request.ts';
import { packageVersion } from '../version.ts';
import { typeOf } from './request-log.ts';
import type { TracingSdk } from './tracing-sdk.ts';

/** What callers may send of their traces, in characters: `traceparent` has 55, `tracestate` 512. */
const MAX_LENGTHS: Readonly<Record<string, number>> = { traceparent: 64, tracestate: 512 };
/** The routes of endpoints that have but one. */
const ROUTES: Partial<Record<Endpoint, string>> = { graphql: '/graphql', introspect: '/introspect', home: '/' };
/** How long what was not sent yet is waited for at the end, in milliseconds. */
const FLUSH_MS = 3000;

interface Begun {
  readonly span: Span;
  readonly context: Context;
}

/**
 * Makes a span of each request, of kind server, and one of the time in which the store was asked for its key. The
 * caller's trace goes on, which is harmless: whoever it is, it only says under which number the span is found.
 */
export class Traces implements RequestWatcher {
  readonly #sdk: TracingSdk;
  readonly #tracer: Tracer;
  readonly #begun = new WeakMap<WatchedRequest, Begun>();

  constructor(sdk: TracingSdk) {
    this.#sdk = sdk;
    this.#tracer = sdk.provider.getTracer('svc-api', packageVersion());
  }

  began(request: WatchedRequest): void {
    const { api, propagator } = this.#sdk;
    const { method, endpoint, from } = request;
    const parent = propagator.extract(api.ROOT_CONTEXT, request.head, { get: headerOf, keys: () => [] });
    const attributes: Attributes = { 'svc_api.endpoint': endpoint };
    if (method !== undefined) attributes['http.request.method'] = method;
    const route = ROUTES[endpoint];
    if (route !== undefined) attributes['http.route'] = route;
    const name = `${method ?? 'HTTP'} ${route ?? endpoint}`;
    const span = this.#tracer.startSpan(name, { kind: api.SpanKind.SERVER, startTime: at(from), attributes }, parent);
    const context = api.trace.setSpan(parent, span);
    this.#begun.set(request, { span, context });
    if (endpoint !== 'guard') return;
    const forwarded: string[] = [];
    propagator.inject(context, forwarded, { set: (headers, header, value) => headers.push(header, value) });
    request.trace = forwarded;
  }

  ended(request: WatchedRequest): void {
    const begun = this.#begun.get(request);
    if (!begun) return;
    const { span, context } = begun;
    if (span.isRecording()) {
      const { storeTime } = request;
      if (storeTime) {
        const asked = this.#tracer.startSpan('store find key', { startTime: at(storeTime.from) }, context);
        asked.end(at(storeTime.to));
      }
      span.setAttributes(attributesOf(request));
      const { status = 0 } = request;
      if (status >= 500) span.setStatus({ code: this.#sdk.api.SpanStatusCode.ERROR });
    }
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

function headerOf(head: Received, name: string): string | undefined {
  const value = head.header(name);
  return value !== undefined && value.length <= MAX_LENGTHS[name]! ? value : undefined;
}

/** A time of `performance.now()` as milliseconds since 1970. */
function at(time: number): number {
  return performance.timeOrigin + time;
}
