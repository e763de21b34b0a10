/** The most that one page can have, of keys or of entries of the audit log. */
export const PAGE_LIMIT = 500;
/** How many a page has where nobody says. */
export const PAGE_DEFAULT = 50;
