import { setTimeout as delay } from 'node:timers/promises';
import { KeysError, printable, type ProgressReport, yieldToEventLoop } from '../basics/index.ts';
import {
  type AuditEntry,
  type AuditPosition,
  type AuditReader,
  CHAIN_START,
  chainHash,
  isKeyedHash,
} from './audit-entry.ts';

/**
 * One of: the log is intact, with how many entries it has, and the number and hash of the newest; or the number of the
 * first broken entry, and what is wrong; or the number of an entry that cannot be verified, and why.
 */
export type AuditVerification =
  | { entries: number; number: number; hash: string }
  | { broken: number; reason: string }
  | { unverifiable: number; reason: string };

export type Failure = Exclude<AuditVerification, { entries: number }>;

const BATCH_ENTRIES = 1000;

/** Parses the head of a log, written as `<number>:<hash>`. @throws KeysError INPUT_INVALID */
export function readAuditHead(text: string): AuditPosition {
  const match = /^(\d{1,15}):((?:hmac:)?[0-9a-f]{64})$/.exec(text.trim());
  if (match) return { number: Number(match[1]), hash: match[2]! };
  throw new KeysError(
    'INPUT_INVALID',
    `"${printable(text)}" is not the head of a log. Write it as <number>:<hash>, as --verify prints it.`,
  );
}

export interface VerifyOptions {
  /** An entry that was kept elsewhere, which the log must still have. */
  known?: AuditPosition | undefined;
  /** Is told how many entries were verified, after each page. */
  onProgress?: ProgressReport | undefined;
  /** Is given the entries of each page, once they are verified. */
  onEntries?: ((entries: readonly AuditEntry[]) => Promise<void>) | undefined;
}

/** Verifies the whole log. Entries that are appended meanwhile are not checked. */
export async function verifyAuditLog(log: AuditReader, options: VerifyOptions = {}): Promise<AuditVerification> {
  for (;;) {
    const start = await log.start();
    const result = await verifyFrom(start, log, options);
    // Entries that were pruned meanwhile seem to be missing.
    if ('entries' in result || (await log.start())?.number === start?.number) return result;
  }
}

async function verifyFrom(
  start: AuditPosition | undefined,
  log: AuditReader,
  { known, onProgress, onEntries }: VerifyOptions,
): Promise<AuditVerification> {
  if (start && !(await isRecorded(start, log))) return { broken: start.number, reason: 'was not deleted by svc-api' };
  const first = start ?? { number: 0, hash: CHAIN_START };
  const head = (await log.head()) ?? first;
  const unknown = known && compareEnds(known, first, head);
  if (unknown) return unknown;
  let { number, hash } = first;
  while (number < head.number) {
    const page = await verifyPage({ number, hash }, head, log, known);
    if (!('hash' in page)) return page;
    ({ number, hash } = page);
    await onEntries?.(page.entries);
    await onProgress?.(number - first.number, head.number - first.number);
    await yieldToEventLoop();
  }
  if (hash !== head.hash) return notLast(number);
  const [later] = await log.find({ order: 'oldest', after: head.number, limit: 1 });
  const newer = await log.head();
  if (later && (newer?.number ?? 0) < later.number)
    return { broken: later.number, reason: 'was not written by svc-api' };
  if (log.key && number > 0 && !isKeyedHash(hash)) return { unverifiable: number, reason: UNKEYED };
  return { entries: number - first.number, number, hash };
}

/**
 * Verifies a page of the log after an entry that is verified.
 * @returns its entries, and what the last of them is
 */
async function verifyPage(
  { number, hash }: AuditPosition,
  head: AuditPosition,
  log: AuditReader,
  known?: AuditPosition,
): Promise<Failure | (AuditPosition & { entries: AuditEntry[] })> {
  const entries = await log.find({ order: 'oldest', after: number, before: head.number + 1, limit: BATCH_ENTRIES });
  if (entries.length === 0) return { broken: number + 1, reason: 'is missing' };
  for (const entry of entries) {
    number += 1;
    const failure = verifyEntry(entry, { number, previous: hash, log });
    if (failure) return failure;
    hash = entry.hash;
    if (number === known?.number && hash !== known.hash) return notThat(number);
  }
  return { number, hash, entries };
}

const UNKEYED =
  'is not keyed: either nothing was written since SVC_API_AUDIT_KEY was set, or the keyed entries were replaced';

/** Compares a known entry with both ends of the log. */
function compareEnds(known: AuditPosition, first: AuditPosition, head: AuditPosition): Failure | undefined {
  if (known.number > head.number) return { broken: known.number, reason: 'is missing: the log ends before it' };
  if (known.number < first.number)
    return { unverifiable: known.number, reason: 'was pruned: compare with a newer head' };
  return known.number === first.number && known.hash !== first.hash ? notThat(known.number) : undefined;
}

function notThat(number: number): Failure {
  return { broken: number, reason: 'is not the one with the given hash' };
}

function notLast(number: number): Failure {
  return { broken: number, reason: 'is not the one that was written last' };
}

function verifyEntry(
  entry: AuditEntry,
  { number, previous, log }: { number: number; previous: string; log: AuditReader },
): Failure | undefined {
  if (entry.number !== number) return { broken: number, reason: 'is missing' };
  const isKeyed = isKeyedHash(entry.hash);
  if (!isKeyed && isKeyedHash(previous)) return { broken: number, reason: 'is not keyed, as the previous ones are' };
  if (isKeyed && !log.key)
    return { unverifiable: number, reason: 'is keyed: set SVC_API_AUDIT_KEY to the path of its key' };
  const expected = chainHash(entry, previous, isKeyed ? log.key : undefined);
  return entry.hash === expected ? undefined : { broken: number, reason: 'is not as it was written' };
}

/** Whether the last pruning that was recorded ended here. */
async function isRecorded({ number, hash }: AuditPosition, log: AuditReader): Promise<boolean> {
  const [pruning] = await log.find({ action: 'PRUNE', order: 'newest', limit: 1 });
  return pruning?.after?.['number'] === number && pruning.after['hash'] === hash;
}

/** How far the log is verified. */
export interface ChainState {
  /** The last entry that is verified, and when it was written, in milliseconds since 1970; null before the first. */
  verified: (AuditPosition & { at: number }) | null;
  /** The number of the newest entry. */
  newest: number;
  /** What is wrong with the entry after it; null as long as nothing is. */
  failure: Failure | null;
}

/** How long others have a turn between two pages, in milliseconds. */
const REST_MS = 40;

/**
 * How far this process has verified the log. It remembers where it is, and goes on from there: each question verifies a
 * page, and what is left then is verified page by page meanwhile. What it has passed it does not read again, so that a
 * change there shows only where the whole log is verified.
 */
export class VerifiedChain {
  readonly #log: AuditReader;
  #position: (AuditPosition & { at: number | null }) | undefined;
  #start = 0;
  #piece: Promise<ChainState> | undefined;
  #isRunning = false;

  constructor(log: AuditReader) {
    this.#log = log;
  }

  /** Verifies the next page, and says how far it is. @throws KeysError STORE_… */
  async state(): Promise<ChainState> {
    const state = await this.#next();
    if (!this.#isDone(state)) void this.#run();
    return state;
  }

  /** Until nothing is left, or the store does not answer any more: the next question begins again. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      do await delay(REST_MS, undefined, { ref: false });
      while (!this.#isDone(await this.#next()));
    } catch {
      // Whoever asks next is told.
    } finally {
      this.#isRunning = false;
    }
  }

  /** Those who ask at once share a page. */
  #next(): Promise<ChainState> {
    return (this.#piece ??= this.#verify().finally(() => (this.#piece = undefined)));
  }

  async #verify(): Promise<ChainState> {
    for (;;) {
      const start = await this.#log.start();
      if (start && start.number !== this.#start && !(await isRecorded(start, this.#log)))
        return this.#stateAt(start.number, { broken: start.number, reason: 'was not deleted by svc-api' });
      this.#start = start?.number ?? 0;
      if (!this.#position || this.#position.number < this.#start)
        this.#position = { number: this.#start, hash: start?.hash ?? CHAIN_START, at: null };
      const state = await this.#verifyFrom(this.#position);
      // Entries that were pruned meanwhile seem to be missing.
      if (!state.failure || (await this.#log.start())?.number === start?.number) return state;
    }
  }

  async #verifyFrom(position: AuditPosition & { at: number | null }): Promise<ChainState> {
    const head = (await this.#log.head()) ?? position;
    if (head.number < position.number)
      return this.#stateAt(head.number, { broken: position.number, reason: 'is missing: the log ends before it' });
    if (position.number < head.number) {
      const page = await verifyPage(position, head, this.#log);
      if (!('hash' in page)) return this.#stateAt(head.number, page);
      this.#position = { number: page.number, hash: page.hash, at: page.entries.at(-1)!.at };
    }
    const { number, hash } = this.#position!;
    return this.#stateAt(head.number, number === head.number && hash !== head.hash ? notLast(number) : null);
  }

  #isDone({ newest, failure }: ChainState): boolean {
    return failure !== null || (this.#position?.number ?? 0) >= newest;
  }

  #stateAt(newest: number, failure: Failure | null): ChainState {
    const { at = null, ...position } = this.#position ?? { number: 0, hash: CHAIN_START };
    return { verified: at === null ? null : { ...position, at }, newest, failure };
  }
}
