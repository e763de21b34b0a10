import { STATUS_CODES } from 'node:http';
import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, type Metric, Registry } from 'prom-client';
import type { MetricsOfKeys, OwnMetric } from '../../feature.ts';
import {
  type Endpoint,
  ENDPOINTS,
  type RequestWatcher,
  type UnreadRequest,
  type WatchedRequest,
} from '../../http/index.ts';
import { type AddedMetric, invalidFeature } from '../../keys/added/index.ts';
import { inTime, printable } from '../../keys/basics/index.ts';
import { noChecks } from '../../keys/authentication/index.ts';
import type { KeyCounts } from '../../keys/repository/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import type { Limited } from '../../limits/index.ts';
import { type Log, NO_LOG } from '../../log.ts';
import { packageVersion } from '../../version.ts';
import { typeOf } from './request-log.ts';

/** The media type of Prometheus' text format. */
export const CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Metrics with their values, as sent between processes. */
export interface Sample {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** How the values of several processes are combined. */
  readonly aggregator: string;
  readonly values: readonly { readonly value: number; readonly labels: object }[];
}

/** More than any delay of the event loop, in seconds. */
const MAX_LAG = 1_000_000;

/** Gauges with the names of counters, which are sums of other metrics. */
const MISNAMED = ['nodejs_active_resources_total', 'nodejs_active_handles_total', 'nodejs_active_requests_total'];

export class Metrics {
  readonly requests: RequestMetrics;
  /** Called with how long the store took. */
  readonly storeTimer: ReturnType<typeof addStoreMetrics>;
  readonly #registry = new Registry();
  readonly #log: Log;
  readonly #inUse: KeysInUse = { keys: undefined, counts: false };

  /** @param of.process whether to include metrics of the process and of Node */
  constructor(of: { process: boolean } = { process: true }, log: Log = NO_LOG) {
    this.#log = log;
    const registry = this.#registry;
    if (of.process) collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
    this.requests = new RequestMetrics(registry);
    this.storeTimer = addStoreMetrics(registry);
    addKeyMetrics(registry, this.#inUse);
    const version = packageVersion();
    addRead(registry, 'gauge', {
      name: 'svc_api_build_info',
      help: 'The version of svc-api, with the value 1.',
      labelNames: ['version'],
      aggregator: 'max',
      read: () => [[1, { version }]],
    });
  }

  /**
   * Exports metrics of a feature. A failing one has no value, which is logged once.
   * @throws KeysError FEATURE_INVALID for a duplicate name
   */
  add(feature: string, metrics: readonly OwnMetric[]): void {
    for (const added of metrics) {
      const { kind, labels: labelNames = [], ...metric } = added;
      if (this.#registry.getSingleMetric(metric.name))
        throw invalidFeature(feature, `Its metric "${metric.name}" has the name of another one. Rename it.`);
      let isFailing = false;
      const read = async () => {
        try {
          const values = await readAdded(added);
          isFailing = false;
          return values;
        } catch (error) {
          if (!isFailing) this.#log.warn({ err: error, feature, metric: metric.name }, 'a metric has no value');
          isFailing = true;
          return [];
        }
      };
      addRead(this.#registry, kind, { ...metric, labelNames, read });
    }
  }

  /** Exports metrics of a feature over the keys in use. */
  addOver(feature: string, metricsOf: MetricsOfKeys): void {
    this.add(
      feature,
      metricsOf(() => this.#inUse.keys),
    );
  }

  /** Continues with the keys of a service over the same store. */
  measure(keys: MeasuredKeys): void {
    this.#inUse.keys = keys;
  }

  /** This process's metrics in Prometheus' text format. */
  async text(): Promise<string> {
    const samples = await this.collect(true);
    return aggregated([samples.map((sample) => ({ ...sample, aggregator: 'first' }))]).metrics();
  }

  /**
   * This process's metrics for the first of several processes.
   * @param counts whether to count the keys in the store, which one process does for all
   */
  async collect(counts: boolean): Promise<Sample[]> {
    this.#inUse.counts = counts;
    // prom-client declares a string type as a number.
    const samples: unknown = await this.#registry.getMetricsAsJSON();
    return (samples as Sample[]).map(asToldToOthers);
  }
}

/**
 * Drops values that JSON cannot represent, and sets how processes are combined. If the event loop was not measured
 * since the last scrape, its minimum delay is Node's largest number.
 */
function asToldToOthers(sample: Sample): Sample {
  const { name } = sample;
  const isLag = name.startsWith('nodejs_eventloop_lag_');
  const isMeasured = ({ value }: { value: number }) => Number.isFinite(value) && !(isLag && value > MAX_LAG);
  const aggregator = isLag ? (name.includes('_min_') ? 'min' : 'max') : sample.aggregator;
  return { ...sample, aggregator, values: sample.values.filter(isMeasured) };
}

/** Combines the samples of processes with prom-client, each by its aggregator. */
export function aggregated(processes: readonly Sample[][]): Registry {
  return AggregatorRegistry.aggregate([...processes]);
}

type Value = readonly [value: number, labels?: Readonly<Record<string, string>>];

/** A metric with its name, help and labels. */
interface ReadMetric {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** How the values of several processes are combined. Default: their sum. */
  readonly aggregator?: 'max';
  /** Reads the current values, which are kept elsewhere. */
  readonly read: () => Iterable<Value> | Promise<Iterable<Value>>;
}

/** Adds a counter or a gauge whose values are read on each scrape. */
function addRead(
  registry: Registry,
  kind: 'counter' | 'gauge',
  { labelNames = [], read, ...described }: ReadMetric,
): void {
  const metric: Counter | Gauge = new (kind === 'counter' ? Counter : Gauge)({
    ...described,
    labelNames,
    registers: [],
    async collect() {
      const values = await read();
      if (labelNames.length > 0) metric.reset();
      else metric.remove();
      for (const [value, labels = {}] of values) metric.inc(labels, value);
    },
  });
  registry.registerMetric(metric);
}

/** The values of a metric of a feature. @throws Error for one that prom-client refuses; if they take too long */
async function readAdded({ kind, labels: names = [], read }: AddedMetric): Promise<readonly Value[]> {
  const values = await inTime(
    Promise.resolve()
      .then(read)
      .then((given) => [...given]),
    WAIT_MS,
  );
  for (const [value, labels = {}] of values) {
    if (!Number.isFinite(value) || (kind === 'counter' && value < 0))
      throw new Error(`"read" gave the value ${printable(String(value))}.`);
    const wrong = Object.entries(labels).find(([name, text]) => !names.includes(name) || typeof text !== 'string');
    if (wrong) throw new Error(`"read" gave the label "${printable(wrong[0])}", which is not declared or no string.`);
  }
  return values;
}

interface Buckets {
  /** For each bound, the number of durations up to it and above the previous bound; the last one is unbounded. */
  readonly counts: Float64Array;
  sum: number;
}

/**
 * A histogram of seconds by one label with few values. Observing is cheaper than with prom-client's, which reports it.
 */
class Durations {
  readonly #label: string;
  readonly #bounds: readonly number[];
  readonly #byLabel = new Map<string, Buckets>();

  /** Adds itself to a registry. @param bounds ascending, in seconds */
  constructor(
    registry: Registry,
    { name, help, label, bounds }: { name: string; help: string; label: string; bounds: readonly number[] },
  ) {
    this.#label = label;
    this.#bounds = bounds;
    const description = { name, help, type: 'histogram', aggregator: 'sum' };
    const get = async () => ({ ...description, values: this.#values(name) });
    registry.registerMetric({ ...description, get, reset: () => this.#byLabel.clear() } as unknown as Metric);
  }

  observe(value: string, seconds: number): void {
    let buckets = this.#byLabel.get(value);
    if (!buckets) {
      buckets = { counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
      this.#byLabel.set(value, buckets);
    }
    let index = 0;
    while (index < this.#bounds.length && seconds > this.#bounds[index]!) index += 1;
    buckets.counts[index]! += 1;
    buckets.sum += seconds;
  }

  #values(name: string) {
    return [...this.#byLabel].flatMap(([value, { counts, sum }]) => {
      const labels = { [this.#label]: value };
      let total = 0;
      const buckets = Array.from(counts, (count, index) => {
        total += count;
        const le = this.#bounds[index] ?? '+Inf';
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total, exemplar: null };
      });
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: total },
      ];
    });
  }
}

/** From a request answered from memory to one that waits for another service. */
const REQUEST_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** For a client that disconnected before the answer. */
const NONE = 'none';
const OTHER = 'other';

/**
 * Counts requests in memory for the registry. All label values come from short lists, so that nothing a client or
 * guarded service sends can create new ones.
 */
class RequestMetrics implements RequestWatcher {
  readonly #ended = new Map<Endpoint, Map<string, number>>(ENDPOINTS.map((endpoint) => [endpoint, new Map()]));
  /** Forwarded requests, by configured upstream. */
  readonly #upstreams = new Map<string, { readonly codes: Map<string, number>; isFailing: boolean }>();
  readonly #operations = { query: { ok: 0, errors: 0 }, mutation: { ok: 0, errors: 0 } };
  readonly #durations: Durations;
  #inFlight = 0;

  constructor(registry: Registry) {
    addRead(registry, 'counter', {
      name: 'svc_api_requests_total',
      help: 'Finished requests by endpoint and status, except where the client left before the answer.',
      labelNames: ['endpoint', 'code'],
      read: () =>
        [...this.#ended].flatMap(([endpoint, codes]) =>
          Array.from(codes, ([code, count]): Value => [count, { endpoint, code }]),
        ),
    });
    addRead(registry, 'counter', {
      name: 'svc_api_upstream_requests_total',
      help: 'Requests passed on, by upstream of svc-api.yaml and status, except where the client left before the answer.',
      labelNames: ['upstream', 'code'],
      read: () =>
        [...this.#upstreams].flatMap(([upstream, { codes }]) =>
          Array.from(codes, ([code, count]): Value => [count, { upstream, code }]),
        ),
    });
    addRead(registry, 'gauge', {
      name: 'svc_api_upstream_failing',
      help: '1 if the latest request to an upstream got 502 or 504, otherwise 0.',
      labelNames: ['upstream'],
      aggregator: 'max',
      read: () => Array.from(this.#upstreams, ([upstream, { isFailing }]): Value => [isFailing ? 1 : 0, { upstream }]),
    });
    addRead(registry, 'counter', {
      name: 'svc_api_graphql_operations_total',
      help: 'GraphQL operations by type, and with or without errors.',
      labelNames: ['type', 'outcome'],
      read: () =>
        Object.entries(this.#operations).flatMap(([type, outcomes]) =>
          Object.entries(outcomes).map(([outcome, count]): Value => [count, { type, outcome }]),
        ),
    });
    addRead(registry, 'gauge', {
      name: 'svc_api_requests_in_flight',
      help: 'Requests in progress.',
      read: () => [[this.#inFlight]],
    });
    this.#durations = new Durations(registry, {
      name: 'svc_api_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer, without switched protocols.',
      label: 'endpoint',
      bounds: REQUEST_SECONDS,
    });
  }

  began(): void {
    this.#inFlight += 1;
  }

  ended(request: WatchedRequest): void {
    const { endpoint, status, operation } = request;
    this.#inFlight -= 1;
    this.#count(endpoint, status);
    if (request.upstream !== undefined) this.#countUpstream(request.upstream, status);
    if (status !== 101) this.#durations.observe(endpoint, request.durationMs / 1000);
    if (operation) this.#operations[typeOf(operation)][request.errors > 0 ? 'errors' : 'ok'] += 1;
  }

  unread({ status }: UnreadRequest): void {
    this.#count('other', status);
  }

  #count(endpoint: Endpoint, status: number | undefined): void {
    increment(this.#ended.get(endpoint)!, status);
  }

  #countUpstream(name: string, status: number | undefined): void {
    let upstream = this.#upstreams.get(name);
    if (!upstream) this.#upstreams.set(name, (upstream = { codes: new Map(), isFailing: false }));
    increment(upstream.codes, status);
    if (status !== undefined) upstream.isFailing = status === 502 || status === 504;
  }
}

function increment(codes: Map<string, number>, status: number | undefined): void {
  const code = status === undefined ? NONE : STATUS_CODES[status] === undefined ? OTHER : `${status}`;
  codes.set(code, (codes.get(code) ?? 0) + 1);
}

/** From reading a file to waiting for another writer. */
const STORE_SECONDS = [0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

/** Measures the time that the store takes. @returns the function to report a time */
export function addStoreMetrics(registry: Registry) {
  const durations = new Durations(registry, {
    name: 'svc_api_store_duration_seconds',
    help: 'Time of the store: find (key of a secret), read, or write (with the wait for other writers).',
    label: 'operation',
    bounds: STORE_SECONDS,
  });
  const errors = { find: 0, read: 0, write: 0 };
  addRead(registry, 'counter', {
    name: 'svc_api_store_errors_total',
    help: 'Operations of the store that failed.',
    labelNames: ['operation'],
    read: () => Object.entries(errors).map(([operation, count]): Value => [count, { operation }]),
  });
  return (operation: keyof typeof errors, seconds: number, failed: boolean) => {
    durations.observe(operation, seconds);
    if (failed) errors[operation] += 1;
  };
}

export type MeasuredKeys = Pick<KeysService, 'authenticator' | 'feature' | 'store' | 'unwrittenUses'> & Limited;

/** The current keys of a process, and whether it counts those in the store. */
interface KeysInUse {
  keys: MeasuredKeys | undefined;
  counts: boolean;
}

/** Registers metrics of key checks, limits and the store's keys. All values are read on each scrape. */
function addKeyMetrics(registry: Registry, inUse: KeysInUse): void {
  addChecks(registry, inUse);
  addLimits(registry, inUse);
  addStoredKeys(registry, inUse);
}

function addChecks(registry: Registry, inUse: KeysInUse): void {
  addRead(registry, 'counter', {
    name: 'svc_api_key_checks_total',
    help: 'Checks of secrets: hit (in memory), miss (store queried), or refused.',
    labelNames: ['result', 'reason'],
    read: () => {
      const { remembered, found, refused } = inUse.keys?.authenticator.counts ?? noChecks();
      const refusals = Object.entries(refused);
      return [
        [remembered, { result: 'hit', reason: '' }],
        [found, { result: 'miss', reason: '' }],
        ...refusals.map(([reason, count]): Value => [count, { result: 'refused', reason }]),
      ];
    },
  });
  addRead(registry, 'gauge', {
    name: 'svc_api_verified_keys',
    help: 'Accepted secrets in memory.',
    read: () => [[inUse.keys?.authenticator.remembered ?? 0]],
  });
  addRead(registry, 'counter', {
    name: 'svc_api_verified_keys_evicted_total',
    help: 'Accepted secrets dropped from memory for others: see server.maxVerifiedKeys.',
    read: () => [[inUse.keys?.authenticator.counts.evicted ?? 0]],
  });
}

function addLimits(registry: Registry, inUse: KeysInUse): void {
  addRead(registry, 'counter', {
    name: 'svc_api_limited_requests_total',
    help: 'Requests refused because a limit of their key was used up.',
    read: () => [[inUse.keys?.limiter.counts.refused ?? 0]],
  });
  addRead(registry, 'counter', {
    name: 'svc_api_limit_leases_total',
    help: 'Leases of limits requested from the store, or received.',
    read: () => [[inUse.keys?.limiter.counts.leases ?? 0]],
  });
  addRead(registry, 'gauge', {
    name: 'svc_api_limited_keys',
    help: 'Recently used keys with limits.',
    read: () => [[inUse.keys?.limiter.size ?? 0]],
  });
}

function addStoredKeys(registry: Registry, inUse: KeysInUse): void {
  const counter = new KeyCounter(async () => inUse.keys!.store.countKeys());
  const latest = async () => (inUse.counts && inUse.keys ? counter.latest() : undefined);
  addRead(registry, 'gauge', {
    name: 'svc_api_keys',
    help: 'Keys in the store by status, counted within the last minutes.',
    labelNames: ['status'],
    aggregator: 'max',
    read: async () => {
      const found = await latest();
      return Object.entries(found?.counts ?? {}).map(([status, count]): Value => [
        count,
        { status: status.toLowerCase() },
      ]);
    },
  });
  addRead(registry, 'gauge', {
    name: 'svc_api_next_key_expiry_timestamp_seconds',
    help: 'Unix time when the next active key expires; absent if none does.',
    aggregator: 'max',
    read: async () => {
      const { nextExpiry = null } = (await latest()) ?? {};
      return nextExpiry === null ? [] : [[nextExpiry / 1000]];
    },
  });
  addRead(registry, 'gauge', {
    name: 'svc_api_unwritten_uses',
    help: 'Uses of keys that are not written to the store yet.',
    read: () => [[inUse.keys?.unwrittenUses ?? 0]],
  });
}

/** Maximum age of a count of keys, in milliseconds. */
const MAX_AGE_MS = 60_000;
/** Pause after a count, as a multiple of its duration. */
const REST_FACTOR = 50;

/** Counts the keys of a store on request, but rarely, since that reads all of them. */
export class KeyCounter {
  readonly #count: () => Promise<KeyCounts>;
  #latest: KeyCounts | undefined;
  #counting: Promise<void> | undefined;
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(count: () => Promise<KeyCounts>) {
    this.#count = count;
  }

  /** The latest count, renewed in the background; undefined before the first. */
  async latest(): Promise<KeyCounts | undefined> {
    if (performance.now() >= this.#restsUntil) this.#counting ??= this.#renew();
    if (!this.#latest && this.#counting) await inTime(this.#counting, WAIT_MS).catch(() => {});
    return this.#latest;
  }

  async #renew(): Promise<void> {
    const began = performance.now();
    try {
      this.#latest = await this.#count();
    } catch {
      // The store does not answer. Requests that need it log that.
      this.#latest = undefined;
    } finally {
      const ended = performance.now();
      this.#restsUntil = ended + Math.max(MAX_AGE_MS, REST_FACTOR * (ended - began));
      this.#counting = undefined;
    }
  }
}

/** Time to wait for the store, in milliseconds. */
const WAIT_MS = 2000;
