import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { packageVersion } from '../version.ts';
import { addKeyMetrics, type KeysInUse, type MeasuredKeys } from './key-metrics.ts';
import { RequestMetrics } from './request-metrics.ts';
import { addStoreMetrics } from './store-metrics.ts';

/** Metrics with their values, as processes tell them to one another. */
export interface Sample {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** How the values of several processes become one. */
  readonly aggregator: string;
  readonly values: readonly { readonly value: number; readonly labels: object }[];
}

/** The metrics of this process. */
export class Metrics {
  /** Counts requests. */
  readonly requests: RequestMetrics;
  /** Is told how long the store takes. */
  readonly storeTimer: ReturnType<typeof addStoreMetrics>;
  readonly #registry = new Registry();
  readonly #inUse: KeysInUse = { keys: undefined, counts: false };

  constructor() {
    const registry = this.#registry;
    collectDefaultMetrics({ register: registry });
    this.requests = new RequestMetrics(registry);
    this.storeTimer = addStoreMetrics(registry);
    addKeyMetrics(registry, this.#inUse);
    new Gauge({
      name: 'svc_api_build_info',
      help: 'The version of svc-api, with the value 1.',
      labelNames: ['version'],
      aggregator: 'max',
      registers: [registry],
    }).set({ version: packageVersion() }, 1);
  }

  /** Goes on with the keys of a service over the same store. */
  measure(keys: MeasuredKeys): void {
    this.#inUse.keys = keys;
  }

  /** In Prometheus' text format, of this process alone. */
  text(): Promise<string> {
    this.#inUse.counts = true;
    return this.#registry.metrics();
  }

  /** For the first of several processes. @param counts whether the keys in the store are counted, too, which one process does for all */
  async collect(counts: boolean): Promise<Sample[]> {
    this.#inUse.counts = counts;
    // The declarations of prom-client take the type for a number.
    const samples: unknown = await this.#registry.getMetricsAsJSON();
    return (samples as Sample[]).map(asToldToOthers);
  }
}

/** Without values that are no numbers, which have no form in JSON, and with how those of processes are summed up. */
function asToldToOthers(sample: Sample): Sample {
  const { name } = sample;
  const isLag = name.startsWith('nodejs_eventloop_lag_');
  const aggregator = isLag ? (name.includes('_min_') ? 'min' : 'max') : sample.aggregator;
  return { ...sample, aggregator, values: sample.values.filter(({ value }) => Number.isFinite(value)) };
}
