/** What is offered while somebody types. */
export { readCommandLine } from './command-line.ts';
export { offerFor, formatReply, resolveOffer, type Shell, SHELLS } from './offer.ts';
