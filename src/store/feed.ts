import { KEY_COLUMNS, type KeyRow } from './tables.ts';

const FOUND_BY = ['id', 'digest', 'previous_digest'] as const;
/** The columns of a key in the order in which the feed has them: first those by which it is found. */
export const FEED_COLUMNS: readonly (keyof KeyRow)[] = [
  ...FOUND_BY,
  ...KEY_COLUMNS.filter((column) => !(FOUND_BY as readonly string[]).includes(column)),
];
