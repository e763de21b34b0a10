/** Completion of commands in a shell. */
export { readCommandLine } from './command-line.ts';
export * from './offer.ts';
