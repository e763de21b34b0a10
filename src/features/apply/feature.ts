import type { Feature } from '../../feature.ts';
import { errors } from './errors.ts';

export const apply: Feature = { name: 'apply', errors };
