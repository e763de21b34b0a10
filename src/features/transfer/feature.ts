import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';

/** Keys from elsewhere: export and import. */
export const transfer: OwnFeature = {
  name: 'transfer',
  errors,
  store: async () => (await import('./store.ts')).transferStore,
};
