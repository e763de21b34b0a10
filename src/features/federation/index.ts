/** Keys for tokens of trusted issuers. */
export { Exchange, type WantedKey } from './exchange.ts';
export { Federation } from './federation.ts';
export * from './federation-rule.ts';
export * from './identified-token.ts';
export { IssuerKeys } from './issuer-keys.ts';
export * from './key-set.ts';
export * from './token-issuer.ts';
