import type { OwnFeature } from '../../feature.ts';
import type { FeedByNats, NatsFeedOptions } from './settings.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** The way for edges to follow without HTTP; undefined for none. */
    readonly feed: { readonly nats: FeedByNats } | undefined;
  }
}

declare module '../edge/feed-source.ts' {
  interface EdgeFeed {
    nats: NatsFeedOptions;
  }
}

/** The feed of keys over NATS, in addition to HTTP. */
export const nats: OwnFeature = {
  name: 'nats',
  needs: ['edge', 'edges'],
  config: {
    defaults: { feed: undefined },
    sections: { feed: async () => (await import('./config.ts')).feed },
  },
  provides: { feed: async () => (await import('./feed-room.ts')).feedByNats },
  background: async (context) => (await import('./background.ts')).publishFeed(context),
};
