import cluster, { type Worker } from 'node:cluster';
import { exposed, type Metrics, type Sample, summed } from './metrics.ts';

/** What the first process asks its workers, one of which counts the keys in the store. */
interface Question {
  scrape: number;
  counts: boolean;
}

interface ScrapeAnswer {
  scraped: number;
  samples: Sample[];
}

/** How long a worker may take, in milliseconds: longer than it waits for a first count of keys. */
const WAIT_MS = 4000;

/** Answers the first process, in a worker. */
export function answerPrimary(metrics: Metrics): void {
  process.on('message', (message: Partial<Question> | null) => {
    const { scrape, counts = false } = message ?? {};
    if (scrape === undefined) return;
    void answerScrape(scrape, metrics.collect(counts));
  });
}

async function answerScrape(scraped: number, collected: Promise<Sample[]>): Promise<void> {
  const answer: ScrapeAnswer = { scraped, samples: await collected };
  // The first process may be gone.
  if (process.connected) process.send!(answer, undefined, {}, () => {});
}

/**
 * The metrics of all workers, in the first process. What a worker has counted stays counted when it is gone, or does
 * not answer in time: a sum that falls would look like a new start to Prometheus.
 */
export class WorkerMetrics {
  /** Workers that can be asked: what is sent to one before it listens is lost. */
  readonly #ready = new Set<Worker>();
  readonly #latest = new Map<Worker, Sample[]>();
  /** What workers had counted that are gone. */
  #gone: Sample[][] = [];
  #scrapes = 0;

  constructor() {
    cluster.on('message', (worker, message: object) => {
      if ('url' in message) this.#ready.add(worker);
    });
    cluster.on('exit', (worker) => {
      this.#ready.delete(worker);
      this.#gone.push(countsIn(this.#latest.get(worker) ?? []));
      this.#latest.delete(worker);
    });
  }

  /** In Prometheus' text format. */
  async scrape(): Promise<string> {
    this.#scrapes += 1;
    const asked = [...this.#ready].filter((worker) => worker.isConnected());
    await Promise.all(asked.map((worker, index) => this.#ask(worker, { scrape: this.#scrapes, counts: index === 0 })));
    const gone = await summed(this.#gone.splice(0));
    this.#gone.unshift(gone);
    return exposed([ownSamples(asked.length), ...this.#gone, ...this.#latest.values()]);
  }

  /** Resolves once a worker has answered, is gone, or has had its time. */
  #ask(worker: Worker, question: Question): Promise<void> {
    return new Promise((resolve) => {
      const settle = () => {
        clearTimeout(timeout);
        worker.off('message', receive).off('exit', settle);
        resolve();
      };
      const receive = (message: Partial<ScrapeAnswer>) => {
        if (message.scraped !== question.scrape) return;
        if (this.#ready.has(worker)) this.#latest.set(worker, message.samples ?? []);
        settle();
      };
      const timeout = setTimeout(() => {
        if (this.#ready.has(worker)) this.#latest.set(worker, countsIn(this.#latest.get(worker) ?? []));
        settle();
      }, WAIT_MS);
      worker.on('message', receive).on('exit', settle);
      worker.send(question, (error) => error && settle());
    });
  }
}

/** Of the samples of a worker, those that only grow. */
function countsIn(samples: readonly Sample[]): Sample[] {
  return samples.filter(({ type }) => type === 'counter' || type === 'histogram');
}

/** What the first process says itself. */
function ownSamples(workers: number): Sample[] {
  const startedAt = (Date.now() - process.uptime() * 1000) / 1000;
  return [
    gauge('svc_api_workers', 'Processes that were asked for these metrics.', workers),
    gauge('process_start_time_seconds', 'Start time of the first process since unix epoch in seconds.', startedAt),
  ];
}

function gauge(name: string, help: string, value: number): Sample {
  return { name, help, type: 'gauge', aggregator: 'sum', values: [{ value, labels: {} }] };
}
