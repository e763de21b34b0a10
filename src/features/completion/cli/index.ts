/** Completion of commands in a shell. */
export { completionsFor, WAIT_MS } from './complete.ts';
export { type Shell, SHELLS } from './offer.ts';
