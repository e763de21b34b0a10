import type { Feature } from '../../feature.ts';
import { errors } from './errors.ts';

export const edge: Feature = { name: 'edge', errors, needs: ['routes', 'consent', 'guard'] };
