/** Lists of keys for people: selected, sorted and counted, with their child keys. */
export * from './key-lists.ts';
