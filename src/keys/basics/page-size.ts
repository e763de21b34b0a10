/** The largest page of keys or audit entries. */
export const MAX_PAGE_SIZE = 500;
/** The page size if none is given. */
export const DEFAULT_PAGE_SIZE = 50;
