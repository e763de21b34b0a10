import {
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditFilter,
  type AuditReader,
  CHAIN_START,
  chainHash,
} from './audit-entry.ts';
import { KeysError } from '../errors.ts';
import { readPastTime } from '../time.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../page.ts';
import { checkSearchText, listOf, normalizeText, printable } from '../text.ts';

/** A user's request for entries of the audit log. Texts are as the user wrote them. */
export interface AuditRequest {
  /** The id or name of the key that was changed. */
  key?: string | null | undefined;
  /** The id or name of the key, or the name of the user, that did it. */
  actor?: string | null | undefined;
  /** One of `AUDIT_ACTIONS`, case-insensitive. */
  action?: string | null | undefined;
  /** Entries from this time on: an RFC 3339 date and time, or an age such as `24h`. */
  since?: string | null | undefined;
  /** Entries before this time, written like `since`. */
  until?: string | null | undefined;
  /** The maximum number of entries, up to 500. Default: 50. */
  first?: number | null | undefined;
}

/** Parses a request for entries of the audit log. @throws KeysError INPUT_INVALID */
export function readAuditRequest(request: AuditRequest, now: number): AuditFilter & { limit: number } {
  const limit = request.first ?? DEFAULT_PAGE_SIZE;
  if (!Number.isInteger(limit) || limit < 0 || limit > MAX_PAGE_SIZE) {
    throw new KeysError('INPUT_INVALID', `"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} entries.`);
  }
  for (const text of [request.key, request.actor]) checkSearchText(text ?? '');
  return {
    limit,
    key: normalizeText(request.key ?? '') || undefined,
    actor: normalizeText(request.actor ?? '') || undefined,
    action: readAction(request.action),
    since: readTime(request.since, now),
    until: readTime(request.until, now),
  };
}

/** Either the log is intact: its length and newest hash; or the number of the first broken entry, and what is wrong. */
export type AuditVerification = { entries: number; hash: string } | { broken: number; reason: string };

const BATCH_ENTRIES = 1000;

/** Verifies the whole log. Entries that are appended meanwhile are not checked. */
export async function verifyAuditLog(log: AuditReader): Promise<AuditVerification> {
  const head = (await log.head()) ?? { number: 0, hash: CHAIN_START };
  let [number, hash] = [0, CHAIN_START];
  while (number < head.number) {
    const entries = await log.find({ order: 'oldest', after: number, before: head.number + 1, limit: BATCH_ENTRIES });
    if (entries.length === 0) return { broken: number + 1, reason: 'is missing' };
    for (const entry of entries) {
      number += 1;
      if (entry.number !== number) return { broken: number, reason: 'is missing' };
      hash = chainHash(entry, hash);
      if (entry.hash !== hash) return { broken: number, reason: 'is not as it was written' };
    }
  }
  if (hash !== head.hash) return { broken: number, reason: 'is not the one that was written last' };
  const [later] = await log.find({ order: 'oldest', after: head.number, limit: 1 });
  const newer = await log.head();
  if (later && (newer?.number ?? 0) < later.number)
    return { broken: later.number, reason: 'was not written by svc-api' };
  return { entries: number, hash };
}

function readAction(text: string | null | undefined): AuditAction | undefined {
  if (!text) return undefined;
  const action = AUDIT_ACTIONS.find((name) => name === text.trim().toUpperCase().replaceAll('-', '_'));
  if (!action)
    throw new KeysError(
      'INPUT_INVALID',
      `"${printable(text)}" is not an audit action. The actions are ${listOf(AUDIT_ACTIONS)}.`,
    );
  return action;
}

function readTime(text: string | null | undefined, now: number): number | undefined {
  if (!text) return undefined;
  const time = readPastTime(text, now);
  if (time !== undefined) return time;
  throw new KeysError(
    'INPUT_INVALID',
    `"${printable(text)}" is not a time. ` +
      'Write an RFC 3339 date and time, such as 2030-12-31T23:59:59Z, or an age, such as 24h.',
  );
}
