/** Tells a webhook: signs, sends, tries again. */
export { Courier, type DeliveryCounts } from './courier.ts';
export { type Destination, postNotice, readDestination, readSigningKeys } from './post.ts';
