import { collectDefaultMetrics, Registry } from 'prom-client';
import { packageVersion } from '../version.ts';
import { addGauge } from './collected.ts';
import { exposed } from './exposition.ts';
import { addKeyMetrics, type KeysInUse, type MeasuredKeys } from './key-metrics.ts';
import { addNoticeMetrics, type MeasuredNotices } from './notice-metrics.ts';
import { RequestMetrics } from './request-metrics.ts';
import type { Sample } from './sample.ts';
import { addStoreMetrics } from './store-metrics.ts';

/** More than any delay of the event loop, in seconds. */
const MAX_LAG = 1_000_000;

/** Gauges with names of counters, which are sums of others. */
const MISNAMED = ['nodejs_active_resources_total', 'nodejs_active_handles_total', 'nodejs_active_requests_total'];

/** The metrics of this process. */
export class Metrics {
  /** Counts requests. */
  readonly requests: RequestMetrics;
  /** Is told how long the store takes. */
  readonly storeTimer: ReturnType<typeof addStoreMetrics>;
  readonly #registry = new Registry();
  readonly #inUse: KeysInUse = { keys: undefined, counts: false };

  /** @param of.process whether those of the process and of Node are among them */
  constructor(of: { process: boolean } = { process: true }) {
    const registry = this.#registry;
    if (of.process) collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
    this.requests = new RequestMetrics(registry);
    this.storeTimer = addStoreMetrics(registry);
    addKeyMetrics(registry, this.#inUse);
    const version = packageVersion();
    addGauge(
      registry,
      {
        name: 'svc_api_build_info',
        help: 'The version of svc-api, with the value 1.',
        labelNames: ['version'],
        aggregator: 'max',
      },
      () => [[1, { version }]],
    );
  }

  /** Goes on with the keys of a service over the same store. */
  measure(keys: MeasuredKeys): void {
    this.#inUse.keys = keys;
  }

  /** Tells of notices from now on. Without a webhook, nobody calls this, and there are no such metrics. */
  measureNotices(notices: MeasuredNotices): void {
    addNoticeMetrics(this.#registry, notices, () => this.#inUse.counts);
  }

  /** In Prometheus' text format, of this process alone. */
  async text(): Promise<string> {
    const samples = await this.collect(true);
    return exposed([samples.map((sample) => ({ ...sample, aggregator: 'first' }))]);
  }

  /**
   * For the first of several processes.
   * @param counts whether the keys in the store are counted, too, which one process does for all
   */
  async collect(counts: boolean): Promise<Sample[]> {
    this.#inUse.counts = counts;
    // The declarations of prom-client take the type for a number.
    const samples: unknown = await this.#registry.getMetricsAsJSON();
    return (samples as Sample[]).map(asToldToOthers);
  }
}

/**
 * Without values that are no numbers, which have no form in JSON, and with how those of processes are summed up. Where
 * the event loop was not measured since the last time, its least delay is the largest number that Node has.
 */
function asToldToOthers(sample: Sample): Sample {
  const { name } = sample;
  const isLag = name.startsWith('nodejs_eventloop_lag_');
  const isMeasured = ({ value }: { value: number }) => Number.isFinite(value) && !(isLag && value > MAX_LAG);
  const aggregator = isLag ? (name.includes('_min_') ? 'min' : 'max') : sample.aggregator;
  return { ...sample, aggregator, values: sample.values.filter(isMeasured) };
}
