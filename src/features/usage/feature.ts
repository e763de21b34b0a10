import type { Feature } from '../../feature.ts';

/** Reports on the requests of keys. */
export const usage: Feature = { name: 'usage' };
