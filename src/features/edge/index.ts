/** An edge: an origin's keys in packed arrays, kept up to date and valid for the length of a lease. */
export {
  type ActivityReport,
  FeedGone,
  type FeedOptions,
  type FeedRoom,
  type FeedSource,
  LEAVE_MS,
  REST,
  type Watching,
} from './feed-source.ts';
export { FeedToken } from './feed-token.ts';
export { HttpFeed } from './http-feed.ts';
export { type EdgeStore, openEdgeStore, readMaxStale } from './open-edge.ts';
