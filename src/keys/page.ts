/** The most that one page can have, of keys or of entries of the audit log. */
export const MAX_PAGE_SIZE = 500;
/** How many a page has where nobody says. */
export const DEFAULT_PAGE_SIZE = 50;
