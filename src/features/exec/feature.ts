import type { OwnFeature } from '../../feature.ts';

/** Commands that run with a temporary key. */
export const exec: OwnFeature = { name: 'exec', needs: ['consent', 'login'] };
