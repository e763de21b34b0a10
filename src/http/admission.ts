import { RequestRefused } from './replies.ts';

/** The highest cost of a request that never waits: about a hundred fields. */
export const LIGHT_COST = 1000;

/** How many heavy requests run at the same time. */
const MAX_RUNNING = 16;
/** The most memory of waiting requests, in bytes. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** The memory of each one besides its own bytes. */
const BYTES_EACH = 8192;
const RETRY_SECONDS = 5;

/** A request that takes long or has a large answer. */
interface HeavyRequest {
  /** The id of its key: keys take turns. */
  readonly keyId: string;
  /** The bytes that it holds while waiting. */
  readonly bytes: number;
  /** Calls `listener` when its client disconnects. @returns a function that unsubscribes */
  onClientGone(listener: () => void): () => void;
}

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
  readonly refuse: () => void;
}

/** The waiting requests of a key, in order, and their memory. */
interface Queue {
  readonly requests: Set<Waiting>;
  bytes: number;
}

/**
 * Limits how many heavy requests of a server run at the same time. Without a limit, all of them would finish late and
 * hold their answers until then. Waiting requests start in order, one of each key in turn.
 */
export class Admission {
  #running = 0;
  /** By key id; the first is next. */
  readonly #queues = new Map<string, Queue>();
  readonly #maxWaitMs: number;
  #bytes = 0;

  /**
   * @param maxWaitMs the longest wait of a request, in milliseconds: clients refused at once would only come back
   * sooner
   */
  constructor(maxWaitMs: number) {
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * Waits until a request can run.
   * @returns a function to call when it is done
   * @throws RequestRefused OVERLOADED, also for a disconnected client
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

  /** Refuses the latest request of the key whose requests take the most memory. */
  #refuseLatest(): void {
    const { requests } = [...this.#queues.values()].reduce((one, other) => (other.bytes > one.bytes ? other : one));
    [...requests].at(-1)!.refuse();
  }

  /** Passes the place of a finished request to the next one. */
  #leave(): void {
    const next = this.#queues.entries().next().value;
    if (!next) {
      this.#running -= 1;
      return;
    }
    const [keyId, queue] = next;
    const [first] = queue.requests;
    // Moves the key behind the others.
    this.#queues.delete(keyId);
    this.#queues.set(keyId, queue);
    first!.start();
  }
}

function overloaded(): RequestRefused {
  const retry = `Try again in ${RETRY_SECONDS} seconds, or ask for less.`;
  const message = `Too many large requests are waiting. ${retry}`;
  return new RequestRefused('OVERLOADED', message, { 'Retry-After': String(RETRY_SECONDS) });
}
