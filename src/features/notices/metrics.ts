import type { AddedMetric } from '../../keys/added/index.ts';
import type { DeliveryCounts } from './dispatcher.ts';

/** Notices, to measure. */
interface Measured {
  /** Attempts of this process, by outcome. */
  readonly counts: Readonly<DeliveryCounts>;
  /** How many wait in the store; undefined while there is no webhook, and in all processes but one. */
  readonly countWaiting: () => Promise<number | undefined>;
}

/** Metrics of notices. */
export function noticeMetrics({ counts, countWaiting }: Measured): AddedMetric[] {
  // Shares one query, so that a store that does not answer is not asked again and again.
  let counting: Promise<number | undefined> | undefined;
  return [
    {
      name: 'svc_api_notice_attempts_total',
      kind: 'counter',
      help: 'Attempts to deliver a notice to the webhook: delivered, or failed (most are repeated).',
      labels: ['result'],
      read: () => [
        [counts.delivered, { result: 'delivered' }],
        [counts.failed, { result: 'failed' }],
      ],
    },
    {
      name: 'svc_api_notices_given_up_total',
      kind: 'counter',
      help: 'Notices given up after their last attempt.',
      read: () => [[counts.givenUp]],
    },
    {
      name: 'svc_api_notices_waiting',
      kind: 'gauge',
      help: 'Notices in the store not delivered yet.',
      async read() {
        counting ??= countWaiting().finally(() => (counting = undefined));
        const waiting = await counting;
        return waiting === undefined ? [] : [[waiting]];
      },
    },
  ];
}
