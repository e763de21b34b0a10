/** Keys as people look through them: selected, sorted and counted, with what descends from them. */
export {
  type Branch,
  type Branches,
  KEY_FILTERS,
  KEY_LISTS,
  KEY_SORTS,
  type KeyFilters,
  KeyLists,
  type KeySelection,
  type KeySort,
  MAX_SELECTED,
  readFilters,
  readRoles,
  readStatus,
  readTags,
  type SelectedKeys,
  type SelectionQuery,
} from './key-lists.ts';
