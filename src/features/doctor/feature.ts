import type { Feature } from '../../feature.ts';

export const doctor: Feature = { name: 'doctor' };
