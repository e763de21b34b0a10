import type { Background, BackgroundContext } from '../../feature.ts';

/** Publishes the feed where the configuration at the start names NATS. */
export async function publishFeed({ keys, config, hasGraphQL, log }: BackgroundContext): Promise<Background> {
  if (!hasGraphQL || !config.feed) return { stop: async () => {} };
  const { NatsPublisher } = await import('./publisher.ts');
  let present = keys;
  const publisher = new NatsPublisher({ settings: config.feed.nats, keys: () => present, log });
  return {
    prepare: async (changed) => () => void (present = changed.keys),
    stop: () => publisher.stop(),
  };
}
