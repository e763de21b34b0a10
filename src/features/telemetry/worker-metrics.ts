import cluster, { type Worker } from 'node:cluster';
import { on } from 'node:events';
import type { Log } from '../../log.ts';
import { aggregated, type Metrics, type Sample } from './metrics.ts';

/** A request of the first process to its workers. One of them counts the keys in the store. */
interface Question {
  scrape: number;
  counts: boolean;
}

interface ScrapeAnswer {
  scraped: number;
  /** Undefined if they could not be collected. */
  samples: Sample[] | undefined;
}

/** Time-out of a worker in milliseconds, longer than its wait for a first count of keys. */
const WAIT_MS = 4000;

/** Answers the first process, in a worker. */
export function answerPrimary(metrics: Metrics, log: Log): void {
  process.on('message', (message: Partial<Question> | null) => {
    const { scrape, counts = false } = message ?? {};
    if (scrape === undefined) return;
    const collected = metrics.collect(counts).catch((error: unknown) => {
      log.error({ err: error }, 'metrics could not be collected');
      return undefined;
    });
    void answerScrape(scrape, collected);
  });
}

async function answerScrape(scraped: number, collected: Promise<Sample[] | undefined>): Promise<void> {
  const answer: ScrapeAnswer = { scraped, samples: await collected };
  // The first process has possibly ended.
  if (process.connected) process.send!(answer, undefined, {}, () => {});
}

/**
 * The metrics of all workers, in the first process, combined by prom-client. Its own `clusterMetrics` fails while one
 * worker does not answer. It also forgets the counts of ended workers: a falling sum looks like a restart to
 * Prometheus.
 */
export class WorkerMetrics {
  /** Latest samples of workers that are ready; messages to others get lost. */
  readonly #latest = new Map<Worker, Sample[]>();
  /** Samples of workers that have ended. */
  #gone: Sample[][] = [];
  #scrapes = 0;

  constructor() {
    cluster.on('message', (worker, message: object) => {
      if ('url' in message) this.#latest.set(worker, []);
    });
    cluster.on('exit', (worker) => {
      this.#gone.push(countsIn(this.#latest.get(worker) ?? []));
      this.#latest.delete(worker);
    });
  }

  /** In Prometheus' text format. */
  async scrape(): Promise<string> {
    const scrape = (this.#scrapes += 1);
    const asked = [...this.#latest.keys()].filter((worker) => worker.isConnected());
    await Promise.all(
      asked.map(async (worker, index) => {
        const samples = await ask(worker, { scrape, counts: index === 0 });
        const known = this.#latest.get(worker);
        if (known) this.#latest.set(worker, samples ?? countsIn(known));
      }),
    );
    const gone = (await aggregated(this.#gone.splice(0)).getMetricsAsJSON()) as unknown as Sample[];
    this.#gone.unshift(gone);
    return aggregated([ownSamples(asked.length), ...this.#gone, ...this.#latest.values()]).metrics();
  }
}

/** The answer of a worker; undefined if it has ended or timed out. */
async function ask(worker: Worker, question: Question): Promise<Sample[] | undefined> {
  const messages = on(worker, 'message', { signal: AbortSignal.timeout(WAIT_MS), close: ['exit'] });
  worker.send(question, () => {});
  try {
    for await (const [message] of messages as AsyncIterable<[Partial<ScrapeAnswer>]>)
      if (message.scraped === question.scrape) return message.samples;
  } catch {
    // It timed out.
  }
  return undefined;
}

/** The samples of a worker's counters, which never decrease. */
function countsIn(samples: readonly Sample[]): Sample[] {
  return samples.filter(({ type }) => type === 'counter' || type === 'histogram');
}

/** Samples of the first process, which replace the workers' own values of them. */
function ownSamples(workers: number): Sample[] {
  const startedAt = (Date.now() - process.uptime() * 1000) / 1000;
  return [
    gauge('svc_api_workers', 'Processes that were asked for these metrics.', workers),
    gauge('process_start_time_seconds', 'Start time of the first process since unix epoch in seconds.', startedAt),
  ];
}

function gauge(name: string, help: string, value: number): Sample {
  return { name, help, type: 'gauge', aggregator: 'first', values: [{ value, labels: {} }] };
}
