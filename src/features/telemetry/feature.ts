import type { OwnFeature } from '../../feature.ts';

/** Metrics, logs and traces of requests. */
export const telemetry: OwnFeature = { name: 'telemetry' };
