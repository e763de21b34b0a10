import type { Feature } from '../../feature.ts';

/** Metrics, logs and traces of requests. */
export const telemetry: Feature = { name: 'telemetry' };
