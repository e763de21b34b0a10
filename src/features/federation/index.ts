/** What tokens of issuers that are trusted prove. */
export { Federation } from './federation.ts';
export { IssuerKeys } from './issuer-keys.ts';
