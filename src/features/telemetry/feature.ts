import type { Feature } from '../../feature.ts';

export const telemetry: Feature = { name: 'telemetry' };
