import type { Feature } from '../../feature.ts';

export const guard: Feature = { name: 'guard', needs: ['people', 'routes', 'sessions'] };
