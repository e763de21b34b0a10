/** Keys as people look through them: selected, sorted and counted, with what descends from them. */
export * from './key-lists.ts';
