import type { Metric, Registry } from 'prom-client';
import type { MetricDescription } from './collected.ts';

/** How often something took how long, by one label. */
interface Buckets {
  /** For each bound, how often it took so long, but longer than the bound before; the last one is without a bound. */
  readonly counts: Float64Array;
  sum: number;
}

/** A histogram of seconds by one label, of few values. To count costs less than by prom-client's, which tells it. */
export class Durations {
  readonly #label: string;
  readonly #bounds: readonly number[];
  readonly #byLabel = new Map<string, Buckets>();

  /** Adds itself to a registry. @param bounds ascending, in seconds */
  constructor(
    registry: Registry,
    { name, help }: MetricDescription,
    { label, bounds }: { label: string; bounds: readonly number[] },
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
