/** What is offered while somebody types. */
export { readCommandLine } from './command-line.ts';
export * from './offer.ts';
