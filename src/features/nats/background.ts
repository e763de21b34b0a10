import { isDeepStrictEqual } from 'node:util';
import type { Background, BackgroundContext } from '../../feature.ts';

/** Publishes the feed if the configuration at the start names NATS. */
export async function publishFeed({ keys, config: { feed }, hasGraphQL, log }: BackgroundContext): Promise<Background> {
  if (!hasGraphQL) return { stop: async () => {} };
  let present = keys;
  const publisher =
    feed && new (await import('./publisher.ts')).NatsPublisher({ settings: feed.nats, keys: () => present, log });
  return {
    prepare:
      async ({ keys: next, config }) =>
      () => {
        present = next;
        if (!isDeepStrictEqual(config.feed, feed))
          log.warn(
            { feed: config.feed },
            'a changed "feed" takes effect with the next start; everything else was loaded',
          );
      },
    stop: async () => publisher?.stop(),
  };
}
