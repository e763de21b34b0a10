import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';

/** Plugins that a user installs into `svc-api` itself. */
export const plugins: OwnFeature = { name: 'plugins', errors };
