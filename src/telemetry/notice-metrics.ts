import type { Registry } from 'prom-client';
import { addCounter, addGauge } from './collected.ts';
import { inTime } from './in-time.ts';

/** What is told of the notices of a process. */
export interface MeasuredNotices {
  /** What became of the attempts of this process. */
  readonly counts: { readonly delivered: number; readonly failed: number; readonly givenUp: number };
  /** How many wait in the store; undefined while there is no webhook. */
  countWaiting(): Promise<number | undefined>;
}

/** How long the store is waited for, in milliseconds. */
const WAIT_MS = 2000;

/**
 * Tells a registry of notices. Everything is read when it is asked for.
 * @param isCounting whether this process is the one that counts what waits in the store
 */
export function addNoticeMetrics(registry: Registry, notices: MeasuredNotices, isCounting: () => boolean): void {
  addCounter(
    registry,
    {
      name: 'svc_api_notice_attempts_total',
      help: 'Attempts to deliver a notice to the webhook: delivered, or failed, after which most are repeated.',
      labelNames: ['result'],
    },
    () => {
      const { delivered, failed } = notices.counts;
      return [
        [delivered, { result: 'delivered' }],
        [failed, { result: 'failed' }],
      ];
    },
  );
  addCounter(
    registry,
    { name: 'svc_api_notices_given_up_total', help: 'Notices that were given up after their last attempt.' },
    () => [[notices.counts.givenUp]],
  );
  // A store that does not answer is asked once, however often somebody wants to know.
  let counting: Promise<number | undefined> | undefined;
  addGauge(
    registry,
    { name: 'svc_api_notices_waiting', help: 'Notices in the store that were not delivered yet.', aggregator: 'max' },
    async () => {
      if (!isCounting()) return [];
      counting ??= notices
        .countWaiting()
        .catch(() => undefined)
        .finally(() => (counting = undefined));
      const waiting = await inTime(counting, WAIT_MS);
      return waiting === undefined ? [] : [[waiting]];
    },
  );
}
