import { MAX_WAITING } from '../../keys/notices/collect.ts';
import { formatTime, UNIT_MS } from '../../keys/time.ts';
import type { Connection } from '../connection.ts';
import { findNoticeStatus } from '../notices.ts';
import { failureBy, type Finding, ok, warning } from './finding.ts';

/** So long may a notice wait before something is wrong. */
const LATE_MS = 10 * UNIT_MS.m;

/** How the notices of a store are doing; nothing for one of which nobody ever made any. */
export async function inspectNotices(connection: Pick<Connection, 'run'>, now: number): Promise<Finding[]> {
  try {
    const status = await connection.run(findNoticeStatus);
    if (!status) return [];
    const { waiting, oldestAt, behind, deliveredAt, failedAt, failure, gone } = status;
    const last = failedAt === null ? '' : `; the last failure, at ${formatTime(failedAt)}: ${failure}`;
    if (gone !== null)
      return [
        warning(
          'NOTICES',
          `The webhook wants no notices any more${last}.`,
          'Change its address under "notices", or send SIGHUP to the servers once it wants them again.',
        ),
      ];
    const counts = `${waiting} notices wait, of at most ${MAX_WAITING}`;
    const isLate = oldestAt !== null && oldestAt < now - LATE_MS;
    if (isLate || (failedAt ?? 0) > (deliveredAt ?? 0))
      return [warning('NOTICES', `${counts}${last}.`, 'See whether a server runs, and what the webhook answers.')];
    return [ok('NOTICES', `${counts}; ${behind} entries of the audit log were not looked at.`)];
  } catch (error) {
    return [failureBy('NOTICES', error)];
  }
}
