import type { Feature } from '../../feature.ts';
import { errors } from './errors.ts';
import { applyOperations } from './operations.ts';

/** Keys that are declared in a file. */
export const apply: Feature = { name: 'apply', ...applyOperations, schema: () => import('./schema.ts'), errors };
