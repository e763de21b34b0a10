import type { OwnFeature } from '../../feature.ts';

/** Scans of files for keys. */
export const scan: OwnFeature = { name: 'scan', needs: ['leaks'] };
