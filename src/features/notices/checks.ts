import type { CheckAnswer, CheckContext } from '../../feature.ts';
import { formatTime, isKeysError, UNIT_MS } from '../../keys/basics/index.ts';
import { readDestination } from './destination.ts';
import { MAX_WAITING, NOTICES, type NoticeStatus } from './collect.ts';
import { HISTORY_MS, shownWebhook } from './notice.ts';

/** The maximum wait of a notice before it is reported. */
const LATE_MS = 10 * UNIT_MS.m;
/** A server with a webhook checks the store every few seconds. */
const SEEN_MS = UNIT_MS.m;

/** Checks the configuration of notices, and the state of the store's notices. */
export async function checkNotices(context: CheckContext): Promise<CheckAnswer[]> {
  return [...(await checkWebhook(context)), ...(await checkWaiting(context))];
}

/** Checks that the secret can be read here. It can also be set only in the environment of the servers. */
async function checkWebhook({ config, env, features }: CheckContext): Promise<CheckAnswer[]> {
  if (!config) return [];
  const { notices } = config;
  if (!notices) return [ok('The configuration has no webhook: no notices are sent.')];
  const isElsewhere = notices.secretFile === undefined && !env['SVC_API_NOTICES_SECRET'];
  try {
    await readDestination(notices, env, features);
  } catch (error) {
    if (!isKeysError(error)) throw error;
    return [
      {
        status: isElsewhere ? 'warning' : 'failure',
        message: error.message,
        remedy: `See the page of its code, ${error.code}: docs/errors.md#${error.code.toLowerCase()}.`,
      },
    ];
  }
  return [
    ok(
      notices.channel === undefined
        ? `The secret that signs notices for ${shownWebhook(notices.url)} can be read.`
        : `Notices go to ${shownWebhook(notices.url)} by the channel ${notices.channel}.`,
    ),
  ];
}

/** Checks the notices of a store, if it ever had any. */
async function checkWaiting({ config, store, clock }: CheckContext): Promise<CheckAnswer[]> {
  const status = await store?.repository.port(NOTICES).status();
  const now = clock();
  if (!status) return [];
  // Servers can use another configuration.
  if (config && !config.notices && status.seenAt < now - SEEN_MS) return answersOfLeft(status, now);
  const { waiting, oldestAt, behind, deliveredAt, failedAt, failure, gone } = status;
  const last = failedAt === null ? '' : `; the last failure, at ${formatTime(failedAt)}: ${failure}`;
  if (gone !== null)
    return [
      warning(
        `The webhook refuses further notices${last}.`,
        'Change its address under "notices", or send SIGHUP to the servers once it accepts them again.',
      ),
    ];
  const counts = `${waiting} notices wait, of at most ${MAX_WAITING}`;
  const isLate = oldestAt !== null && oldestAt < now - LATE_MS;
  if (isLate || (failedAt ?? 0) > (deliveredAt ?? 0))
    return [warning(`${counts}${last}.`, 'Check that a server runs, and that the webhook answers.')];
  return [ok(`${counts}; ${behind} entries of the audit log are not processed yet.`)];
}

/** Notices left from a webhook that no server has any more, which is not a fault. */
function answersOfLeft({ waiting, seenAt }: NoticeStatus, now: number): CheckAnswer[] {
  if (waiting === 0) return [];
  const until = seenAt + HISTORY_MS;
  const left = `${waiting} ${waiting === 1 ? 'notice waits' : 'notices wait'}`;
  const end =
    until > now
      ? `A webhook configured by ${formatTime(until)} receives what waits and what happened since; a later one receives neither.`
      : 'A webhook configured now receives none of it: that was too long ago.';
  return [ok(`${left}. Servers had a webhook until ${formatTime(seenAt)}. ${end}`)];
}

function ok(message: string): CheckAnswer {
  return { status: 'ok', message };
}

function warning(message: string, remedy: string): CheckAnswer {
  return { status: 'warning', message, remedy };
}
