import type { Feature } from '../../feature.ts';

/** Scans of files for keys. */
export const scan: Feature = { name: 'scan', needs: ['leaks'] };
