import type { Feature } from '../../feature.ts';
import { reviewOperations } from './operations.ts';

/** Reviews of all keys, which an administrator attests. */
export const review: Feature = { name: 'review', ...reviewOperations, schema: () => import('./schema.ts') };
