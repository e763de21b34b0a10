import type { Feature } from '../../feature.ts';
import { spools } from './store.ts';

/** Keys from elsewhere: export and import. */
export const transfer: Feature = { name: 'transfer', ports: [spools] };
