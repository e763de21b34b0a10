import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';

/** Export and import of keys. Exports are written as backups are, and copy whole stores. */
export const transfer: OwnFeature = {
  name: 'transfer',
  needs: ['backup'],
  errors,
  store: async () => (await import('./store.ts')).transferStore,
};
