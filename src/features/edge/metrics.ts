import type { AddedMetric } from '../../keys/added/index.ts';
import type { EdgeState } from './open-edge.ts';

const GAUGES = [
  ['svc_api_edge_lag_seconds', 'lagSeconds', 'Time since the origin last confirmed all keys.'],
  [
    'svc_api_edge_lease_seconds',
    'leaseSeconds',
    'Time the edge can still answer; negative once its lease has run out; 0 while it rests.',
  ],
  ['svc_api_edge_keys', 'keys', 'Keys of the edge.'],
  ['svc_api_edge_table_bytes', 'tableBytes', 'Size of their rows, about half of the memory they use.'],
] as const;

/** Metrics of an edge. @param state reads its present state */
export function edgeMetrics(state: () => EdgeState): AddedMetric[] {
  return GAUGES.map(([name, field, help]) => ({ name, kind: 'gauge', help, read: () => [[state()[field]]] }));
}
