import type { Feature } from '../../feature.ts';

export const console: Feature = { name: 'console', needs: ['people', 'sessions', 'consent'] };
