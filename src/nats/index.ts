/** The feed by NATS: the keys of an origin in a bucket, which edges follow. */
export { NatsFeed, type NatsFeedOptions } from './nats-feed.ts';
export { NatsPublisher } from './publisher.ts';
