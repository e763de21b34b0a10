import type { OwnFeature } from '../../feature.ts';

/** Reports on the requests of keys. */
export const usage: OwnFeature = { name: 'usage' };
