/** An edge: keys of an origin in packed arrays, which follow it and are right for as long as it has said. */
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
