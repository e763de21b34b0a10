import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';

/** Backups of a store, and copies of it into another one. */
export const backup: OwnFeature = { name: 'backup', errors };
