import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { BackgroundContext } from '../../feature.ts';
import type { FeedByNats } from './settings.ts';
import { isKeysError, KeysError } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';
import { edgesOf, leaseToEdge, Origin, readEdgeReport } from '../edges/index.ts';
import { connectTo, failureOf, namesOf, type Nats, readMessage } from './connection.ts';
import { type Answering, isPublished, pause, type SeenBucket, Turn } from './turn.ts';

/** Source and target of the publisher. */
export interface PublisherOptions {
  readonly settings: FeedByNats;
  /** The keys, with the current configuration. */
  readonly keys: () => Pick<BackgroundContext['keys'], 'check' | 'feature' | 'limiter'>;
  readonly log: Log;
  /** How long entries of deleted keys are kept at least, in milliseconds. Default: an hour. */
  readonly clearMs?: number | undefined;
}

/** Interval for checking whether another process publishes, and pause before a retry, in milliseconds. */
const [LOOK_MS, RETRY_MS] = [500, 1000];
/**
 * Publishes the keys of a store as entries of a NATS bucket, and gives leases to the edges that follow it. Only one
 * process of an origin publishes at a time; the others watch whether it still answers. Each entry is published on
 * condition that it follows the last known one, so that a delayed entry cannot replace a newer key.
 */
export class NatsPublisher {
  readonly #options: PublisherOptions;
  readonly #stopped = new AbortController();
  readonly #running: Promise<void>;
  #reported = '';
  /** The last known state of the bucket: a restored one has fewer entries. */
  readonly #seen: SeenBucket = { created: '', sequence: 0 };

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Stops, so that another process can publish. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        const { nats, connection } = await connectTo(this.#options.settings);
        try {
          this.#answerAll(connection);
          await this.#takeTurns(nats, connection);
        } finally {
          await connection.close();
        }
      } catch (error) {
        this.#failed(error);
      }
      await pause(RETRY_MS, signal);
    }
  }

  /** Answers the requests that every process of the origin can answer. */
  #answerAll(connection: NatsConnection): void {
    const { activity, leases } = namesOf(this.#options.settings);
    const queue = 'origin';
    connection.subscribe(activity, {
      queue,
      callback: this.#answering(async ({ report }, key) => {
        await this.#options.keys().feature(Origin).takeReport(readEdgeReport(report), key);
        return {};
      }),
    });
    connection.subscribe(leases, {
      queue,
      callback: this.#answering(async ({ requests }, { id }) => ({
        grants: await leaseToEdge(this.#options.keys(), requests, id),
      })),
    });
  }

  readonly #answering: Answering = (work) => (error, message) => void (!error && this.#answer(message, work));

  async #answer(message: Msg, work: Parameters<Answering>[0]): Promise<void> {
    try {
      const asked = readMessage(message);
      const { id, name } = await this.#check(asked);
      message.respond(JSON.stringify(await work(asked, { id, name })));
    } catch (error) {
      const isOwn = isKeysError(error);
      if (!isOwn && !(error instanceof SyntaxError))
        this.#options.log.error({ err: error }, 'an edge was not answered');
      const code = isOwn ? error.code : 'SERVER_FAILED';
      message.respond(JSON.stringify({ error: { code, message: isOwn ? error.message : 'The origin has failed.' } }));
    }
  }

  /** @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_FAILED */
  async #check({ token }: Readonly<Record<string, unknown>>) {
    const secret = typeof token === 'string' ? token : '';
    const checked = await this.#options.keys().check({ secret }, { permission: 'EDGE:READ_ANY' });
    if (checked.ok) return checked.principal.apiKey;
    const code = checked.code === 'UNAUTHENTICATED' || checked.code === 'FORBIDDEN' ? checked.code : 'SERVER_FAILED';
    throw new KeysError(code, checked.message);
  }

  /** Publishes whenever no other process does. */
  async #takeTurns(nats: Nats, connection: NatsConnection): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted && !connection.isClosed()) {
      if (!(await isPublished(connection, namesOf(this.#options.settings).publisher))) {
        const turn = new Turn({
          nats,
          connection,
          settings: this.#options.settings,
          edges: edgesOf(this.#options.keys()),
          seen: this.#seen,
          clearMs: this.#options.clearMs,
          answering: this.#answering,
        });
        try {
          await turn.run(signal, () => this.#publishes());
        } catch (error) {
          this.#failed(error);
          await pause(RETRY_MS, signal);
        }
      }
      await pause(LOOK_MS * (1 + Math.random()), signal);
    }
  }

  #publishes(): void {
    this.#reported = '';
    this.#options.log.info({ bucket: namesOf(this.#options.settings).stream }, 'changes are published by NATS');
  }

  #failed(error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const { message } = error instanceof KeysError ? error : failureOf(error, this.#options.settings);
    if (message === this.#reported) return;
    this.#reported = message;
    this.#options.log.error(
      { reason: message },
      'changes are not published by NATS: edges that follow it get no lease',
    );
  }
}
