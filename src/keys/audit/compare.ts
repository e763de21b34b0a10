import { type ProgressReport, yieldToEventLoop } from '../basics/index.ts';
import { type ApiKey, NO_VALUES } from '../key/index.ts';
import { type AuditedChange, type AuditEntry, type AuditValues, auditValuesOf } from './audit-entry.ts';
import type { AuditReader } from './audit-reader.ts';
import { type AuditVerification, verifyAuditLog, type VerifyOptions } from './verify.ts';

/** A key that differs from the audit log. */
interface KeyDifference {
  id: string;
  name: string;
  /** The difference, as a sentence without its subject. */
  reason: string;
}

/** The result of comparing the keys with the audit log. */
export interface KeyComparison {
  /** How many keys were compared in full. */
  compared: number;
  /** How many keys are older than the log. Of these, only fields changed since its start could be compared. */
  older: number;
  /** The keys that differ from the log, at most 100. */
  differences: KeyDifference[];
}

/** Read access to the keys. */
interface KeySource {
  pages(limit: number): AsyncIterable<ApiKey[]>;
  findById(id: string): Promise<ApiKey | undefined>;
}

/** The state of a key according to the log. */
interface Recorded {
  /** The number of the last entry. */
  number: number;
  /** Its fields; null for a deleted key. */
  values: AuditValues | null;
  /** True if the log has the key's creation, and so all its fields. */
  isComplete: boolean;
}

/** The values of fields that an entry leaves out. */
const NONE: AuditValues = NO_VALUES;

const PAGE_KEYS = 250;
const BATCH_ENTRIES = 1000;
const MAX_DIFFERENCES = 100;

/** The result of checking the audit log, and the keys by it. */
export interface AuditCheck {
  verification: AuditVerification;
  /** Undefined if the log itself is not intact. */
  comparison: KeyComparison | undefined;
}

/**
 * Verifies the whole log and compares all keys with it, which reveals rows that were changed by hand. Keys created
 * before the first entry are compared in the fields changed since. The log holds no digests.
 */
export async function checkAuditLog(
  log: AuditReader,
  keys: KeySource,
  { onCompared, ...options }: Omit<VerifyOptions, 'onEntries'> & { onCompared?: ProgressReport | undefined } = {},
): Promise<AuditCheck> {
  const comparer = new KeyComparer(log, keys);
  const verification = await verifyAuditLog(log, { ...options, onEntries: (entries) => comparer.follow(entries) });
  const isWhole = 'entries' in verification;
  return { verification, comparison: isWhole ? await comparer.finish(onCompared) : undefined };
}

/**
 * Compares all keys with the log while reading it from the start. Keys are stored in the order of their creation in the
 * log, so most were read just before and need no look-up. The result counts only if the log is intact.
 */
class KeyComparer {
  readonly #log: AuditReader;
  readonly #keys: KeySource;
  readonly #pages: AsyncIterator<ApiKey[]>;
  readonly #changed: ChangedKeys;
  /** The recorded states of the keys created most recently. A full page moves to `#earlier`. */
  #recent = new Map<string, Recorded>();
  #earlier = new Map<string, Recorded>();
  readonly #result: KeyComparison = { compared: 0, older: 0, differences: [] };
  #page: IteratorResult<ApiKey[], unknown> | undefined;
  #seen = 0;

  constructor(log: AuditReader, keys: KeySource) {
    [this.#log, this.#keys, this.#changed] = [log, keys, new ChangedKeys(log)];
    this.#pages = keys.pages(PAGE_KEYS)[Symbol.asyncIterator]();
  }

  /** Compares the keys created up to these entries, the next ones of the log. */
  async follow(entries: readonly AuditEntry[]): Promise<void> {
    let page = await this.#nextPage();
    for (const entry of entries) {
      if (!entry.apiKey || (entry.action !== 'CREATE' && entry.action !== 'IMPORT')) continue;
      const { id } = entry.apiKey;
      this.#recent.set(id, replay(undefined, entry));
      if (page?.at(-1)!.id === id) {
        await this.#compare(page);
        page = await this.#nextPage();
      }
      if (this.#recent.size === PAGE_KEYS) [this.#earlier, this.#recent] = [this.#recent, new Map()];
    }
    // The log is past the creation of this page's last key, so keys not found so far are looked up.
    const readUpTo = entries.at(-1)!.at;
    while (page && page.at(-1)!.createdAt < readUpTo) {
      await this.#compare(page);
      page = await this.#nextPage();
    }
  }

  /** Compares the remaining keys, and looks for deleted ones. */
  async finish(onProgress?: ProgressReport): Promise<KeyComparison> {
    for (let page = await this.#nextPage(); page; page = await this.#nextPage()) {
      await this.#compare(page);
      await onProgress?.(this.#seen);
    }
    const end = (await this.#log.head())?.number ?? 0;
    for (let after = (await this.#log.start())?.number ?? 0; after < end; after += BATCH_ENTRIES)
      for (const { apiKey: key } of await this.#log.findLost(after, after + BATCH_ENTRIES))
        this.#add({ ...key!, reason: 'is missing, although it was not deleted' });
    return this.#result;
  }

  /** The next page of keys to compare; undefined after the last. */
  async #nextPage(): Promise<ApiKey[] | undefined> {
    this.#page ??= await this.#pages.next();
    return this.#page.done ? undefined : this.#page.value;
  }

  async #compare(page: readonly ApiKey[]): Promise<void> {
    const [log, keys] = [this.#log, this.#keys];
    // From here on, changes made before the page was read are known.
    if (this.#recent.size + this.#earlier.size > 0) await this.#changed.readOn();
    const open = page.filter((key) => !this.#isAsRecent(key));
    this.#result.compared += page.length - open.length;
    const ids = open.map(({ id }) => id);
    const recorded = await findRecorded(ids, log);
    const began = open.length > 0 ? await startOf(log) : 0;
    for (const key of open) {
      const known = recorded.get(key.id);
      if (known?.isComplete) this.#result.compared += 1;
      else if (key.createdAt < began) this.#result.older += 1;
      if (reasonOf(key, known, began) === undefined) continue;
      const reason = await settledReason(key.id, log, keys);
      if (reason !== undefined) this.#add({ id: key.id, name: key.name, reason });
    }
    this.#seen += page.length;
    this.#page = undefined;
  }

  /** True if a key is as it was created, according to the entries just read, and was not changed since. */
  #isAsRecent(key: ApiKey): boolean {
    const known = this.#recent.get(key.id) ?? this.#earlier.get(key.id);
    return known !== undefined && !this.#changed.mayHave(key.id) && reasonOf(key, known, 0) === undefined;
  }

  #add(difference: KeyDifference): void {
    if (this.#result.differences.length < MAX_DIFFERENCES) this.#result.differences.push(difference);
  }
}

/** How many of the hexadecimal digits of an id share a bit: 2 MiB have one for each. */
const HASH_DIGITS = 6;
const SLICE_ENTRIES = 10_000;

/** Keys that were possibly changed since they were created. Each has a bit, which several can share. */
class ChangedKeys {
  readonly #log: AuditReader;
  readonly #bits = new Uint8Array(16 ** HASH_DIGITS / 8);
  #readUpTo: number | undefined;

  constructor(log: AuditReader) {
    this.#log = log;
  }

  /** Reads the changes up to now. */
  async readOn(): Promise<void> {
    const end = (await this.#log.head())?.number ?? 0;
    let after = (this.#readUpTo ??= (await this.#log.start())?.number ?? 0);
    for (; after < end; after += SLICE_ENTRIES) {
      for (const id of await this.#log.findChanged(after, Math.min(after + SLICE_ENTRIES, end))) {
        const hash = hashOf(id);
        this.#bits[hash >> 3]! |= 1 << (hash & 7);
      }
      await yieldToEventLoop();
    }
    this.#readUpTo = end;
  }

  mayHave(id: string): boolean {
    const hash = hashOf(id);
    return (this.#bits[hash >> 3]! & (1 << (hash & 7))) !== 0;
  }
}

/** Most ids that are no UUIDs share one. */
function hashOf(id: string): number {
  return Number(`0x${id.slice(0, HASH_DIGITS)}`) || 0;
}

/** When the log begins, in milliseconds since 1970; Infinity while it has no entry. */
async function startOf(log: Pick<AuditReader, 'find'>): Promise<number> {
  const [first] = await log.find({ order: 'oldest', limit: 1 });
  return first?.at ?? Number.POSITIVE_INFINITY;
}

/** Differences between keys and the log, by id. Neither may change during the call. */
export async function findDifferences(
  log: Pick<AuditReader, 'find' | 'findChanges'>,
  keys: readonly ApiKey[],
): Promise<Map<string, string>> {
  const began = await startOf(log);
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
 * Why a key differs from the log, while others may be changing both: it must match neither the state before it was read
 * nor the one after. Reads the log on from `known`, since a busy key can have many entries.
 */
async function settledReason(id: string, log: AuditReader, keys: KeySource): Promise<string | undefined> {
  let recorded = await findRecorded([id], log);
  for (;;) {
    const before = recorded.get(id);
    const key = await keys.findById(id);
    recorded = await findRecorded([id], log, recorded);
    const after = recorded.get(id);
    // Entries pruned since then are not missing.
    const began = await startOf(log);
    if (!key || reasonOf(key, before, began) === undefined) return undefined;
    const reason = reasonOf(key, after, began);
    if (reason === undefined || before?.number === after?.number) return reason;
  }
}

function reasonOf(key: ApiKey, recorded: Recorded | undefined, began: number): string | undefined {
  if (key.damaged) return 'is damaged: its row does not match its checksum';
  if (recorded?.values === null) return 'exists, although it was deleted';
  if (!recorded?.isComplete && key.createdAt >= began) return 'exists, although it was never created';
  if (!recorded) return undefined;
  const values: AuditValues = { ...NONE, ...auditValuesOf(key) };
  const expected = recorded.isComplete ? { ...NONE, ...recorded.values } : recorded.values;
  const differing = Object.keys(expected).filter(
    (field) => field in values && !areEqual(values[field], expected[field] ?? NONE[field] ?? null),
  );
  return differing.length > 0 ? `differs in ${differing.join(', ')}` : undefined;
}

/** Most values are short lists of texts: JSON takes several times as long. */
function areEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  const areLists = Array.isArray(one) && Array.isArray(other) && one.length === other.length;
  return (areLists && one.every((item, at) => item === other[at])) || JSON.stringify(one) === JSON.stringify(other);
}

/** The state of these keys according to the log, by id. @param known the state up to the entries read before */
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
