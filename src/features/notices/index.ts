/** Tells a webhook: signs, sends, tries again. */
export { Dispatcher, type DeliveryCounts } from './dispatcher.ts';
export { type Destination, postNotice, readDestination, readSigningKeys } from './post.ts';
