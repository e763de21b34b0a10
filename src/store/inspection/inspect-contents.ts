import type { KeyObject } from 'node:crypto';
import { compareKeys } from '../../keys/audit/compare.ts';
import { verifyAuditLog } from '../../keys/audit/verify.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import { formatTime } from '../../keys/time.ts';
import type { Connection } from '../connection.ts';
import { createKeyRepository } from '../key-repository.ts';
import { failure, failureBy, type Finding, ok, warning } from './finding.ts';

/** How far a clock may run back: see `SteadyClock`. */
const MAX_BACK_MS = 60_000;
/** How many of the newest entries are looked at for jumps of the clock. */
const ENTRIES = 1000;

/** Whether the audit log is whole, and the keys are as it says. */
export async function inspectAuditLog(
  connection: Connection,
  auditKey: KeyObject | undefined,
  onProgress?: ProgressReport,
): Promise<Finding[]> {
  const repository = createKeyRepository(connection, auditKey);
  try {
    const result = await verifyAuditLog(repository.auditLog, undefined, onProgress);
    if ('broken' in result)
      return [
        failure(
          'AUDIT_LOG',
          `The audit log is broken: entry ${result.broken} ${result.reason}.`,
          'Find out who could write to the store, and compare its keys with a backup.',
        ),
      ];
    if ('unverifiable' in result)
      return [
        warning(
          'AUDIT_LOG',
          `The audit log cannot be verified: entry ${result.unverifiable} ${result.reason}.`,
          'Set SVC_API_AUDIT_KEY as the servers have it.',
        ),
      ];
    const { differences } = await compareKeys(repository.auditLog, repository);
    const findings = differences.map(({ name, id, reason }) =>
      failure('AUDIT_LOG', `The key "${name}" (${id}) ${reason}.`, 'Delete it, or restore it from a backup.'),
    );
    return findings.length > 0 ? findings : [ok('AUDIT_LOG', `The audit log is whole: ${result.entries} entries.`)];
  } catch (error) {
    return [failureBy('AUDIT_LOG', error)];
  }
}

/**
 * Whether the clock of this machine is behind what the store remembers, or ran back between entries of its audit log.
 * @param now milliseconds since 1970
 */
export async function inspectClock(connection: Connection, now: number): Promise<Finding[]> {
  const repository = createKeyRepository(connection);
  try {
    const [latest, entries] = await Promise.all([
      repository.latestTime(),
      repository.auditLog.find({ order: 'newest', limit: ENTRIES }),
    ]);
    const newest = Math.max(latest, entries[0]?.at ?? 0);
    const findings: Finding[] = [];
    if (now < newest - MAX_BACK_MS)
      findings.push(
        failure(
          'CLOCK',
          `The clock says ${formatTime(now)}, and the store was written at ${formatTime(newest)}.`,
          'Set the clock. If it is right, stop the servers and run "delete from clock" in the store.',
        ),
      );
    const jump = entries.findIndex((entry, index) => entry.at < (entries[index + 1]?.at ?? 0) - MAX_BACK_MS);
    if (jump >= 0) {
      const [after, before] = [entries[jump]!, entries[jump + 1]!];
      findings.push(
        warning(
          'CLOCK',
          `The clock ran back between the entries ${before.number} (${formatTime(before.at)}) and ${after.number} ` +
            `(${formatTime(after.at)}) of the audit log.`,
          'Let the machines of all servers follow one source of time.',
        ),
      );
    }
    return findings.length > 0
      ? findings
      : [ok('CLOCK', `The clock says ${formatTime(now)}, after all that the store has.`)];
  } catch (error) {
    return [failureBy('CLOCK', error)];
  }
}
