import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';
import { applyOperations } from './operations.ts';

/** Keys that are declared in a file. */
export const apply: OwnFeature = { name: 'apply', ...applyOperations, schema: () => import('./schema.ts'), errors };
