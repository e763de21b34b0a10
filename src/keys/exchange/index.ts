/** Keys for something else that proves who asks: another key, or the token of an issuer that is trusted. */
export { Exchange, MAX_EXCHANGED_SECONDS, type WantedKey } from './exchange.ts';
export * from './federation.ts';
