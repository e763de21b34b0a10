import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';

/** Checks of keys beside a service, without the store. */
export const edge: OwnFeature = { name: 'edge', errors, needs: ['routes', 'consent', 'guard'] };
