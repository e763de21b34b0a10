import { allStores } from '../../src/features/index.ts';

/** All that features keep in stores. */
export const STORES = await allStores();
