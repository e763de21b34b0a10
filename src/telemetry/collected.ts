import { Counter, Gauge, type Registry } from 'prom-client';

/** What a metric is called and means, and its labels. */
export interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** How the values of several processes become one. Default: their sum. */
  readonly aggregator?: 'max';
}

/** A value, and its labels. */
export type Value = readonly [value: number, labels?: Readonly<Record<string, string>>];

/** The values of a metric by now, which are kept elsewhere: to count them costs what it costs there. */
export type Read = () => Iterable<Value> | Promise<Iterable<Value>>;

/** Adds a counter to a registry that is read when somebody asks for it. */
export function addCounter(registry: Registry, { labelNames = [], ...described }: MetricDescription, read: Read): void {
  const counter = new Counter({
    ...described,
    labelNames,
    registers: [],
    async collect() {
      const values = await read();
      this.reset();
      for (const [value, labels = {}] of values) this.inc(labels, value);
    },
  });
  registry.registerMetric(counter);
}

/** The same for a gauge. Without a value, it is left out. */
export function addGauge(registry: Registry, { labelNames = [], ...described }: MetricDescription, read: Read): void {
  const gauge = new Gauge({
    ...described,
    labelNames,
    registers: [],
    async collect() {
      const values = await read();
      if (labelNames.length > 0) this.reset();
      else this.remove();
      for (const [value, labels = {}] of values) this.set(labels, value);
    },
  });
  registry.registerMetric(gauge);
}
