import { type AuditPosition, type AuditReader, CHAIN_START, chainHash } from './audit-entry.ts';

/**
 * Either the log is intact: how many entries it has, and its newest hash; or the number of the first broken entry, and
 * what is wrong.
 */
export type AuditVerification = { entries: number; hash: string } | { broken: number; reason: string };

const BATCH_ENTRIES = 1000;

/** Verifies the whole log. Entries that are appended meanwhile are not checked. */
export async function verifyAuditLog(log: AuditReader): Promise<AuditVerification> {
  for (;;) {
    const start = await log.start();
    const result = await verifyFrom(start, log);
    // Entries that were pruned meanwhile seem to be missing.
    if (!('broken' in result) || (await log.start())?.number === start?.number) return result;
  }
}

async function verifyFrom(start: AuditPosition | undefined, log: AuditReader): Promise<AuditVerification> {
  if (start && !(await isRecorded(start, log))) return { broken: start.number, reason: 'was not deleted by svc-api' };
  const first = start ?? { number: 0, hash: CHAIN_START };
  const head = (await log.head()) ?? first;
  let { number, hash } = first;
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
  return { entries: number - first.number, hash };
}

/** Whether the last pruning that was recorded ended here. */
async function isRecorded({ number, hash }: AuditPosition, log: AuditReader): Promise<boolean> {
  const [pruning] = await log.find({ action: 'PRUNE', order: 'newest', limit: 1 });
  return pruning?.after?.['number'] === number && pruning.after['hash'] === hash;
}
