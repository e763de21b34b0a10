import type { FeedRoom } from './feed-source.ts';

/** The way to follow an origin beside HTTP, of the feature that provides it as `feed`; undefined if there is none. */
export async function feedBesideHttp(): Promise<FeedRoom | undefined> {
  const { allFeatures } = await import('../index.ts');
  const [provided] = allFeatures().flatMap(({ provides }) => provides?.['feed'] ?? []) as (() => Promise<FeedRoom>)[];
  return provided?.();
}
