import type { Feature } from '../../feature.ts';
import { errors } from './errors.ts';

export const backup: Feature = { name: 'backup', errors };
