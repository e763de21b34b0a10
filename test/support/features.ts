import { allStores } from '../../src/features/index.ts';

/** The stores of all features. */
export const STORES = await allStores();
