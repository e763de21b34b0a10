/** Keys as people look through them: selected, sorted and counted, with what descends from them. */
export { readRoles, readStatus } from './filters.ts';
export { type Branch, type Branches, KEY_LISTS, KeyLists, type KeySelection, type SelectedKeys } from './key-lists.ts';
