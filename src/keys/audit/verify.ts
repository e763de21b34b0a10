import { KeysError, printable, type ProgressReport, yieldToEventLoop } from '../basics/index.ts';
import type { AuditEntry, AuditPosition } from './audit-entry.ts';
import type { AuditReader } from './audit-reader.ts';
import { CHAIN_START, chainHash, isKeyedHash } from './chain.ts';

/**
 * One of: the log is intact, with its number of entries and the newest entry's number and hash; the number of the first
 * broken entry, and why it is broken; the number of an entry that cannot be verified, and why.
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
  /** Called after each page with the number of verified entries. */
  onProgress?: ProgressReport | undefined;
  /** Called with the entries of each page, once they are verified. */
  onEntries?: ((entries: readonly AuditEntry[]) => Promise<void>) | undefined;
}

/** Verifies the whole log, up to its newest entry at the start of the call. */
export async function verifyAuditLog(log: AuditReader, options: VerifyOptions = {}): Promise<AuditVerification> {
  for (;;) {
    const start = await log.start();
    const result = await verifyFrom(start, log, options);
    // A failure after a pruning may only be an entry that was pruned during the check.
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
 * Verifies the page of the log after a verified entry.
 * @returns its entries, and the result up to the last of them
 */
export async function verifyPage(
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

export function notLast(number: number): Failure {
  return { broken: number, reason: 'is not the last entry written' };
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
  return entry.hash === expected ? undefined : { broken: number, reason: 'was changed after it was written' };
}

/** True if the last recorded pruning ended with this entry. */
export async function isRecorded({ number, hash }: AuditPosition, log: AuditReader): Promise<boolean> {
  const [pruning] = await log.find({ action: 'PRUNE', order: 'newest', limit: 1 });
  return pruning?.after?.['number'] === number && pruning.after['hash'] === hash;
}
