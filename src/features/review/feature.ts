import type { OwnFeature } from '../../feature.ts';
import { reviewOperations } from './operations.ts';

/** Reviews of all keys, which an administrator attests. */
export const review: OwnFeature = { name: 'review', ...reviewOperations, schema: () => import('./schema.ts') };
