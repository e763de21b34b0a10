/** Keys that are given for something else that proves who asks: a key itself. */
export { Exchange, type WantedKey } from './exchange.ts';
