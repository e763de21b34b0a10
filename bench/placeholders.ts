/** In a request: where the key goes that it is sent with. */
export const TOKEN = '<token>';
/** In a request: digits in whose place each request has another number of as many, which fits an Int. */
export const NUMBER = '1234567890';
