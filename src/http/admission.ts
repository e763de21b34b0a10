import { RequestRefused } from './replies.ts';

/** What a request costs that never waits: one of some hundred fields. */
export const LIGHT_COST = 1000;

/** How many heavy requests are carried out at a time. */
const MAX_RUNNING = 16;
/** What those that wait may take of the memory, in bytes. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** What each takes beside its own bytes. */
const BYTES_EACH = 8192;
const RETRY_SECONDS = 5;

/** A request that takes long, or has a large answer. */
interface HeavyRequest {
  /** The id of its key: keys take turns. */
  readonly keyId: string;
  /** What it holds while it waits. */
  readonly bytes: number;
  /** Calls `listener` when its client has gone; ended by the function that it returns. */
  onClientGone(listener: () => void): () => void;
}

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
  readonly refuse: () => void;
}

/** The requests of a key that wait, in their order, and what they take. */
interface Queue {
  readonly requests: Set<Waiting>;
  bytes: number;
}

/**
 * Bounds how many heavy requests of a server are carried out at a time. Begun without a bound, all of them would end
 * late, and hold their answers meanwhile. Those that wait are begun in their order, one of each key in turn.
 */
export class Admission {
  #running = 0;
  /** By the ids of keys; the first is next. */
  readonly #queues = new Map<string, Queue>();
  readonly #maxWaitMs: number;
  #bytes = 0;

  /**
   * @param maxWaitMs how long a request waits, in milliseconds: clients that are refused at once would only come back
   * sooner
   */
  constructor(maxWaitMs: number) {
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * Waits until a request may be carried out.
   * @returns what is to be called once that is done
   * @throws RequestRefused OVERLOADED, also for a client that has gone
   */
  async enter(request: HeavyRequest): Promise<() => void> {
    if (this.#running < MAX_RUNNING) this.#running += 1;
    else await this.#wait(request);
    return () => this.#leave();
  }

  #wait(request: HeavyRequest): Promise<void> {
    const { keyId } = request;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let endListening = () => {};
    const end = () => {
      this.#remove(keyId, waiting);
      clearTimeout(timer);
      endListening();
    };
    const waiting: Waiting = {
      bytes: request.bytes + BYTES_EACH,
      start: () => (end(), resolve()),
      refuse: () => (end(), reject(overloaded())),
    };
    const timer = setTimeout(waiting.refuse, this.#maxWaitMs);
    this.#add(keyId, waiting);
    endListening = request.onClientGone(waiting.refuse);
    while (this.#bytes > MAX_WAITING_BYTES) this.#refuseLatest();
    return promise;
  }

  #add(keyId: string, waiting: Waiting): void {
    const queue = this.#queues.get(keyId) ?? { requests: new Set(), bytes: 0 };
    this.#queues.set(keyId, queue);
    queue.requests.add(waiting);
    queue.bytes += waiting.bytes;
    this.#bytes += waiting.bytes;
  }

  #remove(keyId: string, waiting: Waiting): void {
    const queue = this.#queues.get(keyId);
    if (!queue?.requests.delete(waiting)) return;
    queue.bytes -= waiting.bytes;
    this.#bytes -= waiting.bytes;
    if (queue.requests.size === 0) this.#queues.delete(keyId);
  }

  /** Of the key whose requests take most, the one that came last. */
  #refuseLatest(): void {
    const { requests } = [...this.#queues.values()].reduce((one, other) => (other.bytes > one.bytes ? other : one));
    [...requests].at(-1)!.refuse();
  }

  /** The place of a request that is done goes to the next one. */
  #leave(): void {
    const next = this.#queues.entries().next().value;
    if (!next) {
      this.#running -= 1;
      return;
    }
    const [keyId, queue] = next;
    const [first] = queue.requests;
    // The other keys come first now.
    this.#queues.delete(keyId);
    this.#queues.set(keyId, queue);
    first!.start();
  }
}

function overloaded(): RequestRefused {
  const retry = `Try again in ${RETRY_SECONDS} seconds, or ask for less.`;
  const message = `Too many large requests wait for their turn. ${retry}`;
  return new RequestRefused('OVERLOADED', message, { 'Retry-After': String(RETRY_SECONDS) });
}
