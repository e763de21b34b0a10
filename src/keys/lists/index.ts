/** Keys as people look through them: selected, sorted and counted, with what descends from them. */
export { KEY_FILTERS, type KeyFilters, readFilters, readRoles, readStatus, readTags } from './filters.ts';
export {
  type Branch,
  type Branches,
  KEY_LISTS,
  KEY_SORTS,
  KeyLists,
  type KeySelection,
  type KeySort,
  MAX_SELECTED,
  type SelectedKeys,
  type SelectionQuery,
} from './key-lists.ts';
