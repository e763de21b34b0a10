import type { Feature } from '../../feature.ts';

export const routes: Feature = { name: 'routes' };
