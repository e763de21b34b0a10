import type { MetricsOfKeys } from '../../feature.ts';
import { isBehind } from './feed.ts';
import { edgesOf } from './origin.ts';

/** Metrics of the edges that follow this process. */
export const feedMetrics: MetricsOfKeys = (inUse) => {
  const edges = () => {
    const keys = inUse();
    return keys && edgesOf(keys);
  };
  const list = () => edges()?.list() ?? [];
  return [
    {
      name: 'svc_api_feed_edges',
      kind: 'gauge',
      help: 'Edges that asked for changes within 10 minutes: answering, resting, or behind, which refuse all keys.',
      labels: ['state'],
      read() {
        const all = list();
        const resting = all.filter(({ restMs }) => restMs > 0).length;
        const behind = all.filter(isBehind).length;
        return [
          [all.length - resting - behind, { state: 'answering' }],
          [resting, { state: 'resting' }],
          [behind, { state: 'behind' }],
        ];
      },
    },
    {
      name: 'svc_api_feed_lag_seconds',
      kind: 'gauge',
      help: 'Longest time since an edge last had all changes.',
      aggregator: 'max',
      read: () => [[Math.max(...list().map(({ lagMs }) => lagMs), 0) / 1000]],
    },
    {
      name: 'svc_api_feed_changes_waited_total',
      kind: 'counter',
      help: 'Changes that waited for edges.',
      read: () => [[edges()?.waited.count ?? 0]],
    },
    {
      name: 'svc_api_feed_changes_waited_seconds_total',
      kind: 'counter',
      help: 'Total time that changes waited for edges.',
      read: () => [[edges()?.waited.seconds ?? 0]],
    },
  ];
};
