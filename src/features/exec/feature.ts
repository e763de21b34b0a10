import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';

/** Commands that run with a temporary key. */
export const exec: OwnFeature = { name: 'exec', needs: ['consent', 'login', 'usage'], errors };
