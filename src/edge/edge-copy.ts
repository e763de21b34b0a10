import { renameSync, rmSync, statSync } from 'node:fs';
import { uptime } from 'node:os';
import { dirname, resolve } from 'node:path';
import { printable } from '../keys/basics/index.ts';
import type { Log } from '../log.ts';
import { bootId } from '../store/index.ts';
import { type FeedEnd, FeedLines } from './feed-lines.ts';
import type { KeyTable } from './key-table.ts';
import { readSealedFile, SealedFile } from './sealed-file.ts';

/** What the clocks of the machine show, in milliseconds. */
export interface Clocks {
  /** The id of its boot; empty where that is not known. */
  readonly boot: string;
  /** Since then, by clocks that nobody sets: one stands still while it sleeps, the other one may be a container's. */
  readonly sinceBoot: readonly [number, number];
  /** Since 1970. */
  readonly wall: number;
}

/** Where a copy of the keys is kept. */
export interface EdgeCopyOptions {
  readonly path: string;
  /** The token by which it is encrypted, which may become another one. */
  readonly token: () => string;
  /** For how long beyond the last lease it may be used, in milliseconds. */
  readonly graceMs: number;
  readonly log: Log;
  readonly clocks?: (() => Clocks) | undefined;
}

/** The last lease that the origin has given. */
export interface LastLease {
  /** When it was asked for, by `performance.now`. */
  readonly askedAt: number;
  readonly leaseMs: number;
}

/** How often it is written that there is another lease: after so much of the grace, but at least every few seconds. */
const RENEW_PART = 1 / 10;
const MAX_RENEW_MS = 5000;
/** When another copy is tried after a failure. */
const RETRY_MS = 30_000;
/** How much is encrypted at once. */
const TEXT_BYTES = 64 * 1024;
/** What may be appended before all is written anew: as much as all keys took, and so much more. */
const MORE_BYTES = 1 << 20;
const [PLUS, LINE_FEED] = [Buffer.from('+'), Buffer.from('\n')];

/**
 * The keys of an edge in a file, for a start while the origin is away: lines of the feed, as they come. Each `=` also
 * says when the last lease was asked for, by the clocks of the machine. A copy is as old as the keys of an edge would
 * be that has been cut off since that lease: neither a start nor a write makes it newer.
 */
export class EdgeCopy {
  readonly #options: EdgeCopyOptions;
  readonly #clocks: () => Clocks;
  /** The file at the path, if it is of this process, and its length when all keys were written. */
  #file: SealedFile | undefined;
  #allBytes = 0;
  #token = '';
  /** All keys are being written to another file; and what has changed since that began. */
  #writing: Promise<void> | undefined;
  #changes: Buffer[] = [];
  #isStopped = false;
  #lease: LastLease | undefined;
  #renewAt = Number.NEGATIVE_INFINITY;
  #retryAt = Number.NEGATIVE_INFINITY;

  constructor(options: EdgeCopyOptions) {
    this.#options = options;
    this.#clocks = options.clocks ?? readClocks;
  }

  /**
   * Puts the keys of the copy into a table that is empty.
   * @returns since when the lease has ended, in milliseconds; undefined if it cannot be used, which is logged
   */
  async read(table: KeyTable): Promise<number | undefined> {
    const { path, token, graceMs, log } = this.#options;
    try {
      let end: FeedEnd | undefined;
      let lines = new FeedLines(table);
      for await (const text of readSealedFile(path, token())) {
        await lines.take(text);
        if (lines.end) [end, lines] = [lines.end, new FeedLines(table)];
      }
      if (!end) throw new Error('it is not whole');
      const ageMs = since(end.more, this.#clocks());
      if (!(ageMs >= 0)) throw new Error('it is of a later time than the clock of this machine shows');
      const staleMs = Math.max(ageMs - end.leaseMs, 0);
      if (staleMs < graceMs) return staleMs;
      throw new Error(`the lease has ended ${Math.round(staleMs / 1000)} seconds ago, which is beyond the grace`);
    } catch (error) {
      log.warn({ file: path, reason: (error as Error).message }, 'the copy of the keys is not used');
      return undefined;
    }
  }

  /** Writes what a table has taken. @param lines what has changed */
  taken(table: KeyTable, lines: Buffer, lease: LastLease): void {
    this.#lease = lease;
    const now = performance.now();
    if (this.#writing && lines.length > 0) this.#changes.push(lines);
    if (lines.length === 0 && now < this.#renewAt) return;
    if (this.#file) this.#append(lines);
    this.#renewAt = now + Math.min(this.#options.graceMs * RENEW_PART, MAX_RENEW_MS);
    const isDue =
      !this.#file || this.#file.length > 2 * this.#allBytes + MORE_BYTES || this.#token !== this.#options.token();
    if (!isDue || this.#writing || now < this.#retryAt) return;
    this.#writing = this.#writeAll(table).finally(() => {
      this.#writing = undefined;
      this.#changes = [];
    });
  }

  /** Ends it with what is known. What is taken of a table then is written anew. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#writing;
    if (this.#file) this.#append(Buffer.alloc(0));
    await this.#file?.close();
    this.#file = undefined;
    this.#isStopped = false;
    this.#renewAt = Number.NEGATIVE_INFINITY;
  }

  /** Writes all keys of a table beside the file, and puts them in its place. */
  async #writeAll(table: KeyTable): Promise<void> {
    const { path, log } = this.#options;
    const [began, token, temporary] = [performance.now(), this.#options.token(), `${path}.new`];
    let file: SealedFile | undefined;
    try {
      remove(temporary);
      file = await SealedFile.create(temporary, token);
      let [text, bytes]: [Buffer[], number] = [[], 0];
      for (const row of table.rows()) {
        text.push(PLUS, row, LINE_FEED);
        bytes += row.length;
        if (bytes < TEXT_BYTES) continue;
        const appended = file.append(Buffer.concat(text));
        [text, bytes] = [[], 0];
        await appended;
        if (this.#isStopped) throw new Error('it is stopped');
      }
      await file.append(this.#lastText([...text, ...this.#changes.splice(0)]));
      await file.sync();
      renameSync(temporary, path);
      void this.#file?.close();
      [this.#file, this.#allBytes, this.#token] = [file, file.length, token];
      if (this.#changes.length > 0) this.#append(Buffer.concat(this.#changes));
      const fields = { file: path, keys: table.size, bytes: file.length };
      log.info({ ...fields, durationMs: Math.round(performance.now() - began) }, 'the copy of the keys was written');
    } catch (error) {
      await file?.close();
      remove(temporary);
      if (!this.#isStopped) this.#failed(error);
    }
  }

  #append(lines: Buffer): void {
    const file = this.#file!;
    file.append(this.#lastText([lines])).catch((error: unknown) => {
      if (this.#file !== file) return;
      this.#file = undefined;
      // It lacks what has changed.
      remove(this.#options.path);
      this.#failed(error);
      void file.close();
    });
  }

  /** Lines, and how things stand behind them. */
  #lastText(lines: readonly Buffer[]): Buffer {
    const { askedAt, leaseMs } = this.#lease!;
    const agoMs = performance.now() - askedAt;
    const { boot, sinceBoot, wall } = this.#clocks();
    const clocks = [...sinceBoot, wall].map((time) => time - agoMs);
    return Buffer.concat([...lines, Buffer.from(`=${JSON.stringify(['', leaseMs, boot, ...clocks])}\n`)]);
  }

  #failed(error: unknown): void {
    this.#retryAt = performance.now() + RETRY_MS;
    this.#options.log.warn({ err: error, file: this.#options.path }, 'the copy of the keys cannot be written');
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Whatever comes next tells.
  }
}

function readClocks(): Clocks {
  const sinceBoot = [Number(process.hrtime.bigint()) / 1e6, uptime() * 1000] as const;
  return { boot: bootId(), sinceBoot, wall: Date.now() };
}

/** How many milliseconds ago something was, at least; below 0, or not a number, if that is not known. */
function since([boot, ...then]: readonly unknown[], clocks: Clocks): number {
  const now = [...clocks.sinceBoot, clocks.wall];
  const [awake, up, wall] = now.map((time, index) => time - Number(then[index])) as [number, number, number];
  return boot === clocks.boot && boot !== '' ? Math.max(awake, up) : wall;
}

/** Reads where a copy is to be. @returns its whole path; or what is wrong with it, in words that follow its name */
export function readCopyFile(
  given: string | undefined,
  graceMs: number,
): string | undefined | { readonly refusal: string } {
  if (given === undefined) return undefined;
  if (graceMs === 0) return { refusal: 'is used in the grace alone, which is 0s. Give a longer grace, such as 5m.' };
  const path = resolve(given);
  let isPossible = false;
  try {
    const file = statSync(path, { throwIfNoEntry: false });
    isPossible = file ? file.isFile() : statSync(dirname(path)).isDirectory();
  } catch {
    // It is refused.
  }
  return isPossible ? path : { refusal: `is "${printable(given, 200)}". Name a file in a folder that is there.` };
}
