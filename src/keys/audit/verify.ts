import { setTimeout as delay } from 'node:timers/promises';
import { KeysError, printable, type ProgressReport, yieldToEventLoop } from '../basics/index.ts';
import { type ApiKey, UNRESTRICTED } from '../key/index.ts';
import {
  type AuditedChange,
  type AuditEntry,
  type AuditPosition,
  type AuditReader,
  type AuditValues,
  auditValuesOf,
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

/**
 * Verifies the whole log. Entries that are appended meanwhile are not checked.
 * @param known an entry that was kept elsewhere, which the log must still have
 * @param onProgress is told how many entries were verified, after each page
 */
export async function verifyAuditLog(
  log: AuditReader,
  known?: AuditPosition,
  onProgress?: ProgressReport,
): Promise<AuditVerification> {
  for (;;) {
    const start = await log.start();
    const result = await verifyFrom(start, log, { known, onProgress });
    // Entries that were pruned meanwhile seem to be missing.
    if ('entries' in result || (await log.start())?.number === start?.number) return result;
  }
}

async function verifyFrom(
  start: AuditPosition | undefined,
  log: AuditReader,
  { known, onProgress }: { known: AuditPosition | undefined; onProgress: ProgressReport | undefined },
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
 * @returns its last entry, with when that was written in milliseconds since 1970
 */
async function verifyPage(
  { number, hash }: AuditPosition,
  head: AuditPosition,
  log: AuditReader,
  known?: AuditPosition,
): Promise<Failure | (AuditPosition & { at: number })> {
  const entries = await log.find({ order: 'oldest', after: number, before: head.number + 1, limit: BATCH_ENTRIES });
  if (entries.length === 0) return { broken: number + 1, reason: 'is missing' };
  for (const entry of entries) {
    number += 1;
    const failure = verifyEntry(entry, { number, previous: hash, log });
    if (failure) return failure;
    hash = entry.hash;
    if (number === known?.number && hash !== known.hash) return notThat(number);
  }
  return { number, hash, at: entries.at(-1)!.at };
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

/** A key that is not as the audit log says. */
export interface KeyDifference {
  id: string;
  name: string;
  /** What is wrong. */
  reason: string;
}

/** The result of comparing the keys with the audit log. */
export interface KeyComparison {
  /** How many keys were compared in full. */
  compared: number;
  /** How many keys are older than the log: only what was changed since then could be compared. */
  older: number;
  /** The keys that are not as the log says, at most 100. */
  differences: KeyDifference[];
}

/** Read access to the keys. */
interface KeySource {
  pages(limit: number): AsyncIterable<ApiKey[]>;
  findById(id: string): Promise<ApiKey | undefined>;
}

/** What the log says of a key. */
interface Recorded {
  /** The number of the last entry. */
  number: number;
  /** The fields that it has; null for a deleted key. */
  values: AuditValues | null;
  /** Whether the log has the key from its creation on, so that it has all fields. */
  isComplete: boolean;
}

/** What a key has in the fields that there were not yet when its entries were written, unless they say otherwise. */
const EARLIER: AuditValues = { ...UNRESTRICTED };

const PAGE_KEYS = 500;
const MAX_DIFFERENCES = 100;

/**
 * Compares all keys with what the log says of them, so that a row that was written by hand shows. Keys that were
 * created before the first entry of the log are compared in the fields that were changed since. Digests are not in the
 * log.
 * @param onProgress is told how many keys were compared, after each page
 */
export async function compareKeys(
  log: AuditReader,
  keys: KeySource,
  onProgress?: ProgressReport,
): Promise<KeyComparison> {
  const [first] = await log.find({ order: 'oldest', limit: 1 });
  const began = first?.at ?? Number.POSITIVE_INFINITY;
  const result: KeyComparison = { compared: 0, older: 0, differences: [] };
  const add = (difference: KeyDifference) => {
    if (result.differences.length < MAX_DIFFERENCES) result.differences.push(difference);
  };
  let seen = 0;
  for await (const page of keys.pages(PAGE_KEYS)) {
    const ids = page.map(({ id }) => id);
    const recorded = await findRecorded(ids, log);
    const due = await log.findDue(ids.filter((id) => !recorded.has(id)));
    for (const key of page) {
      const known = recorded.get(key.id);
      if (due.has(key.id) && !key.damaged) continue;
      if (known?.isComplete) result.compared += 1;
      else if (key.createdAt < began) result.older += 1;
      if (reasonOf(key, known, began) === undefined) continue;
      const reason = await settledReason(key.id, { log, keys, began });
      if (reason !== undefined) add({ id: key.id, name: key.name, reason });
    }
    seen += page.length;
    await onProgress?.(seen);
  }
  const end = (await log.head())?.number ?? 0;
  for (let after = (await log.start())?.number ?? 0; after < end; after += BATCH_ENTRIES)
    for (const { apiKey: key } of await log.findLost(after, after + BATCH_ENTRIES))
      add({ ...key!, reason: 'is gone, but was not deleted' });
  return result;
}

/** In what each of these keys is not as the log says, by their ids, where nobody changes keys or log meanwhile. */
export async function findDifferences(
  log: Pick<AuditReader, 'find' | 'findChanges'>,
  keys: readonly ApiKey[],
): Promise<Map<string, string>> {
  const [first] = await log.find({ order: 'oldest', limit: 1 });
  const began = first?.at ?? Number.POSITIVE_INFINITY;
  const differences = new Map<string, string>();
  for (let at = 0; at < keys.length; at += PAGE_KEYS) {
    const page = keys.slice(at, at + PAGE_KEYS);
    const recorded = await findRecorded(
      page.map(({ id }) => id),
      log,
    );
    for (const key of page) {
      const reason = reasonOf(key, recorded.get(key.id), began);
      if (reason !== undefined) differences.set(key.id, reason);
    }
  }
  return differences;
}

/**
 * Why a key is not as the log says, though others may change both meanwhile: it is as before a look at it or as after.
 * The log is read on from there, as a key that is changed all the time may have many entries.
 */
async function settledReason(
  id: string,
  { log, keys, began }: { log: AuditReader; keys: KeySource; began: number },
): Promise<string | undefined> {
  let recorded = await findRecorded([id], log);
  for (;;) {
    const before = recorded.get(id);
    const key = await keys.findById(id);
    recorded = await findRecorded([id], log, recorded);
    const after = recorded.get(id);
    if (!key || reasonOf(key, before, began) === undefined) return undefined;
    const reason = reasonOf(key, after, began);
    if (reason === undefined || before?.number === after?.number) return reason;
  }
}

function reasonOf(key: ApiKey, recorded: Recorded | undefined, began: number): string | undefined {
  if (key.damaged) return 'is damaged: its row does not match its checksum';
  if (recorded?.values === null) return 'is there, but was deleted';
  if (!recorded?.isComplete && key.createdAt >= began) return 'is there, but was not created';
  if (!recorded) return undefined;
  const values = auditValuesOf(key);
  const expected = recorded.isComplete ? { ...EARLIER, ...recorded.values } : recorded.values;
  const differing = Object.keys(expected).filter(
    (field) => field in values && !areEqual(values[field], expected[field]),
  );
  return differing.length > 0 ? `differs in ${differing.join(', ')}` : undefined;
}

/** Most values are short lists of texts: JSON takes several times as long. */
function areEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  const areLists = Array.isArray(one) && Array.isArray(other) && one.length === other.length;
  return (areLists && one.every((item, at) => item === other[at])) || JSON.stringify(one) === JSON.stringify(other);
}

/** What the log says of these keys, by their ids. @param known what it said up to the entries that were read before */
async function findRecorded(
  ids: readonly string[],
  log: Pick<AuditReader, 'findChanges'>,
  known: ReadonlyMap<string, Recorded> = new Map(),
): Promise<Map<string, Recorded>> {
  const recorded = new Map(known);
  if (ids.length === 0) return recorded;
  const read = Array.from(known.values(), ({ number }) => number);
  for (let after: number | undefined = Math.max(0, ...read); after !== undefined;) {
    const changes: AuditedChange[] = await log.findChanges(ids, { order: 'oldest', after, limit: BATCH_ENTRIES });
    for (const change of changes) recorded.set(change.apiKey!.id, replay(recorded.get(change.apiKey!.id), change));
    after = changes[BATCH_ENTRIES - 1]?.number;
  }
  return recorded;
}

function replay(before: Recorded | undefined, { number, action, after, before: earlier }: AuditedChange): Recorded {
  if (action === 'DELETE') return { number, values: null, isComplete: true };
  const isWhole = action === 'CREATE' || action === 'IMPORT' || (action === 'RESTORE' && earlier === null);
  if (isWhole) return { number, values: after, isComplete: true };
  return { number, values: { ...before?.values, ...after }, isComplete: before?.isComplete ?? false };
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
      this.#position = page;
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
