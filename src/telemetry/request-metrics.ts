import { STATUS_CODES } from 'node:http';
import type { Registry } from 'prom-client';
import {
  type Endpoint,
  ENDPOINTS,
  type RequestWatcher,
  type UnreadRequest,
  type WatchedRequest,
} from '../http/index.ts';
import { addCounter, addGauge, type Value } from './collected.ts';
import { Durations } from './durations.ts';
import { typeOf } from './request-lines.ts';

/** From a request that is answered from memory, to one that waits for another service. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** For a client that was gone before there was an answer. */
const NONE = 'none';
const OTHER = 'other';

/**
 * Counts requests in memory, and tells a registry when that is asked. All values of labels are of short lists: nothing
 * that a client, or a service behind the guard, sends can make a new one.
 */
export class RequestMetrics implements RequestWatcher {
  readonly #ended = new Map<Endpoint, Map<string, number>>(ENDPOINTS.map((endpoint) => [endpoint, new Map()]));
  readonly #operations = { query: { ok: 0, errors: 0 }, mutation: { ok: 0, errors: 0 } };
  readonly #durations: Durations;
  #inFlight = 0;

  constructor(registry: Registry) {
    addCounter(
      registry,
      {
        name: 'svc_api_requests_total',
        help: 'Requests that have ended, by endpoint and status; none where the client was gone before an answer.',
        labelNames: ['endpoint', 'code'],
      },
      () =>
        [...this.#ended].flatMap(([endpoint, codes]) =>
          Array.from(codes, ([code, count]): Value => [count, { endpoint, code }]),
        ),
    );
    addCounter(
      registry,
      {
        name: 'svc_api_graphql_operations_total',
        help: 'Operations of GraphQL, by type, and by whether the answer has errors.',
        labelNames: ['type', 'outcome'],
      },
      () =>
        Object.entries(this.#operations).flatMap(([type, outcomes]) =>
          Object.entries(outcomes).map(([outcome, count]): Value => [count, { type, outcome }]),
        ),
    );
    addGauge(registry, { name: 'svc_api_requests_in_flight', help: 'Requests that have begun and not ended.' }, () => [
      [this.#inFlight],
    ]);
    this.#durations = new Durations(
      registry,
      {
        name: 'svc_api_request_duration_seconds',
        help: 'Time from the head of a request to the end of its answer; switched protocols are left out.',
      },
      { label: 'endpoint', bounds: SECONDS },
    );
  }

  began(): void {
    this.#inFlight += 1;
  }

  ended(request: WatchedRequest): void {
    const { endpoint, status, operation } = request;
    this.#inFlight -= 1;
    this.#count(endpoint, status);
    if (status !== 101) this.#durations.observe(endpoint, request.durationMs / 1000);
    if (operation) this.#operations[typeOf(operation)][request.errors > 0 ? 'errors' : 'ok'] += 1;
  }

  unread({ status }: UnreadRequest): void {
    this.#count('other', status);
  }

  #count(endpoint: Endpoint, status: number | undefined): void {
    const code = status === undefined ? NONE : STATUS_CODES[status] === undefined ? OTHER : `${status}`;
    const codes = this.#ended.get(endpoint)!;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
}
