import { MAX_WAITING } from '../../keys/notices/collect.ts';
import { HISTORY_MS } from '../../keys/notices/notice.ts';
import type { NoticeStatus } from '../../keys/notices/notice-store.ts';
import { formatTime, UNIT_MS } from '../../keys/time.ts';
import type { Connection } from '../connection.ts';
import { findNoticeStatus } from '../notices.ts';
import { failureBy, type Finding, type InspectOptions, ok, warning } from './finding.ts';

/** So long may a notice wait before something is wrong. */
const LATE_MS = 10 * UNIT_MS.m;
/** A server with a webhook looks through the store every few seconds. */
const SEEN_MS = UNIT_MS.m;

/** How the notices of a store are doing; nothing for one of which nobody ever made any. */
export async function inspectNotices(
  connection: Pick<Connection, 'run'>,
  { clock, isWithoutWebhook }: Pick<InspectOptions, 'clock' | 'isWithoutWebhook'>,
): Promise<Finding[]> {
  try {
    const status = await connection.run(findNoticeStatus);
    const now = clock();
    if (!status) return [];
    // Servers may read another configuration than this one.
    if (isWithoutWebhook && status.seenAt < now - SEEN_MS) return inspectLeft(status, now);
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

/** What still waits where no server has a webhook any more, which nothing is wrong with. */
function inspectLeft({ waiting, seenAt }: NoticeStatus, now: number): Finding[] {
  if (waiting === 0) return [];
  const until = seenAt + HISTORY_MS;
  const left = `${waiting} ${waiting === 1 ? 'notice waits' : 'notices wait'} from when there was a webhook`;
  const end =
    until > now
      ? `One that is named by ${formatTime(until)} gets what waits, and what has happened since; a later one nothing.`
      : 'One that is named gets nothing of it: that was too long ago.';
  return [ok('NOTICES', `${left}, until ${formatTime(seenAt)}. ${end}`)];
}
