/** Placeholder for a request's key. */
export const TOKEN = '<token>';
/** Placeholder for a number with the same number of digits, which fits an Int and differs in each request. */
export const NUMBER = '1234567890';
