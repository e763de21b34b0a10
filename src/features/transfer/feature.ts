import type { Feature } from '../../feature.ts';
import { spools } from './store.ts';
import { errors } from './errors.ts';

/** Keys from elsewhere: export and import. */
export const transfer: Feature = { name: 'transfer', errors, ports: [spools] };
