import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { WorkerAnswer, WorkerQuestion, WorkerStart } from './write-worker.ts';

/** Beside this file, from the sources as in the package. */
const WORKER = new URL(`write-worker${extname(import.meta.url)}`, import.meta.url);
/** How long closing waits for a statement that is under way. */
const MAX_CLOSE_MS = 5000;

/** A connection to a database in a thread of its own, where it blocks nobody. It takes one statement at a time. */
export class WriteThread {
  readonly #file: string;
  readonly #pragmas: readonly string[];
  #worker: Worker | undefined;
  #closed = new Int32Array(new SharedArrayBuffer(4));
  #waiting: PromiseWithResolvers<WorkerAnswer> | undefined;
  #inTransaction = false;

  /** @param pragmas what the connection is told before its first statement */
  constructor(file: string, pragmas: readonly string[]) {
    this.#file = file;
    this.#pragmas = pragmas;
  }

  get inTransaction(): boolean {
    return this.#inTransaction;
  }

  /** Whether a statement is under way, or may follow in the same transaction. */
  get isBusy(): boolean {
    return this.#inTransaction || this.#waiting !== undefined;
  }

  /**
   * Starts the thread unless it runs, and opens the database there. Nothing is read yet.
   * @returns whether it was started
   */
  async start(): Promise<boolean> {
    if (this.#worker) return false;
    this.#closed = new Int32Array(new SharedArrayBuffer(4));
    const workerData: WorkerStart = { file: this.#file, pragmas: [...this.#pragmas], closed: this.#closed };
    // Options of the program, such as --input-type, need not suit a file.
    const worker = new Worker(WORKER, { workerData, execArgv: [] });
    this.#worker = worker;
    let reason: unknown = new Error('The thread that writes has ended.');
    worker.on('error', (error) => (reason = error));
    worker.once('exit', () => worker === this.#worker && this.#end(reason));
    worker.on('message', (answer: WorkerAnswer) => worker === this.#worker && this.#take(answer));
    await this.#answer();
    return true;
  }

  /** Runs one statement. @throws an error with SQLite's code */
  async run(sql: string, parameters: readonly unknown[]): Promise<{ rows: unknown[]; changes: number }> {
    const first = await this.#ask({ sql, parameters });
    const { error, rows, changes } = first;
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    for (let { hasMore } = first; hasMore;) {
      const next = await this.#ask('next');
      rows.push(...next.rows);
      ({ hasMore } = next);
    }
    return { rows, changes };
  }

  /** Closes the database and ends the thread, which can be started again. A transaction is rolled back. */
  close(): void {
    if (!this.#worker) return;
    this.#worker.postMessage('close' satisfies WorkerQuestion);
    // Afterwards another file may be at the path, beside which nothing may be changed.
    Atomics.wait(this.#closed, 0, 0, MAX_CLOSE_MS);
    this.#end(new Error('The database was closed.'));
  }

  async #ask(question: WorkerQuestion): Promise<WorkerAnswer> {
    if (!this.#worker) throw new Error('The thread that writes has ended.');
    this.#worker.postMessage(question);
    return this.#answer();
  }

  /** Only while it is waited for, the thread keeps the program from ending. */
  #answer(): Promise<WorkerAnswer> {
    this.#worker!.ref();
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  #take(answer: WorkerAnswer): void {
    this.#worker!.unref();
    this.#inTransaction = answer.inTransaction;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting!.resolve(answer);
  }

  #end(reason: unknown): void {
    this.#worker!.unref();
    this.#worker = undefined;
    this.#inTransaction = false;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(reason);
  }
}
