import { createEdgeApp, type EdgeAppOptions } from '../edge-app.ts';
import { feedBesideHttp } from '../feed-room.ts';
import type { FeedSource } from '../feed-source.ts';
import { HttpFeed, type HttpFeedOptions } from '../http-feed.ts';
import { type EdgeStore, openEdgeStore } from '../open-edge.ts';
import { consentFlows } from '../../consent/consent-flow.ts';
import { byRoutes } from '../../guard/access.ts';
import { Discovery } from '../../guard/discovery.ts';
import { addForwardAuth } from '../../guard/forward-auth.ts';
import { KeysError } from '../../../keys/basics/index.ts';
import type { Config } from '../../../config/config.ts';
import type { Catalog } from '../../../keys/permissions/index.ts';
import type { ServiceApp } from '../../../http/app.ts';
import { createRouter } from '../../routes/index.ts';
import type { OpenedService, StartService } from '../../../service/configured-server.ts';
import { type AskedGuard, checkGuard, guardService } from '../../guard/cli/guard-service.ts';
import type { OpenKeys } from '../../../service/open-keys.ts';

/** An edge as described by flags. */
export interface AskedEdge extends Omit<HttpFeedOptions, 'origin'> {
  /** The address of the origin; undefined if the configuration has the origin. */
  readonly origin: string | undefined;
}

/** An open edge, with its keys and app. */
export interface OpenEdge {
  readonly keys: OpenKeys;
  readonly start: StartService;
  /** Reads its state, for metrics. */
  readonly state: EdgeStore['state'];
}

/** Time to wait for all keys before listening without them, in milliseconds. */
const PATIENCE_MS = 2000;

/** Checks whether the configuration makes an edge a guard. */
function isGuard({ upstream }: Pick<AskedGuard, 'upstream'>, { upstreams }: Pick<Config, 'upstreams'>): boolean {
  return upstream !== undefined || upstreams.length > 0;
}

/** Refuses a configuration that an edge does not support. @throws KeysError USAGE, CONFIG_INVALID */
export function checkEdge(guard: AskedGuard, config: Config, catalog: Catalog): void {
  const field = config.people ? 'people' : config.signIn === 'on' ? 'sign-in' : undefined;
  if (field !== undefined)
    throw new KeysError(
      'CONFIG_INVALID',
      `${config.file ?? 'svc-api.yaml'} sets "${field}", but people cannot sign in at an edge, because it has no ` +
        `store. Remove "${field}" from its file, or use a guard with the key store.`,
    );
  if (isGuard(guard, config)) return checkGuard(guard, config, catalog);
  if (guard.flag !== undefined)
    throw new KeysError(
      'USAGE',
      `--${guard.flag} is for a guard, but nothing is guarded. Name a service, or set "upstreams" in svc-api.yaml.`,
    );
}

/**
 * Opens the keys of an origin, and the app that checks them: it answers 503 until all keys are loaded.
 * @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_INCOMPATIBLE if the origin refuses; CONFIG_… of its files
 */
export async function openEdge(
  feed: AskedEdge,
  guard: AskedGuard,
  { config, catalog, maxVerifiedKeys }: { config: Config; catalog: Catalog; maxVerifiedKeys: number | undefined },
): Promise<OpenEdge> {
  const store = await openEdgeStore(await sourceOf(feed, config), { patienceMs: PATIENCE_MS, log: feed.log });
  const { log } = feed;
  const [{ servedBy }, { additionRules, openKeysOver }] = await Promise.all([
    import('../../../service/create-app.ts'),
    import('../../../service/open-keys.ts'),
  ]);
  return {
    keys: openKeysOver(store, catalog, { rules: await additionRules(), maxVerifiedKeys }),
    start: async (opened, server) => {
      const start = isGuard(guard, opened.config)
        ? guardService({ ...guard, hasNoDoor: true }, log)
        : servedBy(async (served, replaces) => edgeApp(served, { log, replaces }));
      const served = await start(opened, server);
      return {
        ...served,
        prepare: async (changed) => {
          checkEdge(guard, changed.config, changed.keys.catalog);
          return served.prepare(changed);
        },
      };
    },
    state: () => store.state(),
  };
}

/** @throws KeysError USAGE unless exactly one is named */
async function sourceOf({ origin, ...feed }: AskedEdge, config: Config): Promise<FeedSource> {
  const beside = await feedBesideHttp();
  const place = beside?.placeIn(config);
  const isByHttp = feed.ca !== undefined || feed.clientCert !== undefined;
  if (place && (origin !== undefined || isByHttp))
    throw new KeysError(
      'USAGE',
      `"feed" in ${config.file} sets how to follow the origin. Leave out --origin, --ca and --client-cert, or "feed".`,
    );
  if (place) return beside!.open(place, feed);
  if (origin !== undefined) return new HttpFeed({ origin, ...feed });
  throw new KeysError('USAGE', 'Pass the address of the origin with --origin, or set "feed" in svc-api.yaml.');
}

function edgeApp(
  { keys, config }: OpenedService,
  { replaces, ...more }: Pick<EdgeAppOptions, 'log'> & { replaces: ServiceApp | undefined },
): ServiceApp {
  const { credentials, trust, cors, publicUrl, limits } = config;
  const router = createRouter(config.routes);
  const app = createEdgeApp({
    keys,
    startedAt: replaces?.startedAt ?? Date.now(),
    credentials,
    trust: trust.texts,
    cors,
    publicUrl,
    failedCredentials: limits.failedCredentials,
    replaces,
    ...more,
  });
  const { authenticator, catalog } = keys;
  app.routeContext.places.guarded = new Discovery(byRoutes(router), publicUrl);
  app.routeContext.places.tellsClients = consentFlows(keys.catalog).includes('CODE');
  addForwardAuth(app, app.routeContext, { authenticator, catalog, router, trust, signIn: undefined });
  return app;
}
