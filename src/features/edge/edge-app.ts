import { Hono } from 'hono';
import {
  addHealthChecks,
  addIntrospection,
  type AppOptions,
  type AppPlaces,
  BearerCheck,
  type BearerEnv,
  type CheckParts,
  ClientAddresses,
  Cors,
  corsBy,
  errorReply,
  internalError,
  Issuer,
  partsOf,
  type Received,
  requestIdIn,
  respond,
  type RouteContext,
  type ServedRequest,
  type ServiceApp,
  shortcutOf,
} from '../../http/index.ts';
import { LOOPBACK } from '../../keys/basics/index.ts';

/** Options of an edge's app. */
export type EdgeAppOptions = Pick<
  AppOptions,
  'keys' | 'startedAt' | 'credentials' | 'trust' | 'failedCredentials' | 'cors' | 'publicUrl' | 'log' | 'replaces'
>;

/** An app with the parts for checking keys. */
type EdgeApp = ServiceApp & { readonly routeContext: Pick<RouteContext, 'places' | 'check' | keyof CheckParts> };

/**
 * An app that only checks keys: `/introspect`, health checks, requests of proxies, and 404 as JSON for everything else.
 */
export function createEdgeApp({
  keys,
  startedAt,
  cors: corsOptions,
  publicUrl,
  log,
  replaces,
  ...from
}: EdgeAppOptions): EdgeApp {
  const app = new Hono<BearerEnv>();
  const parts = partsOf({ ...(log && { log }), ...from }, replaces);
  const places: AppPlaces = { graphql: undefined, links: [] };
  const issuer = new Issuer(publicUrl, from.trust ?? LOOPBACK);
  const check = new BearerCheck(
    {
      keys,
      ...from,
      isOwn: (to) => places.guarded?.isOwn(to) === true,
      discover: ({ to }) => (places.tellsClients && to ? places.guarded?.find(to) : undefined),
    },
    parts,
  );
  const allowOrigins = corsBy(new Cors(corsOptions));
  const toOf = (request: Received) => issuer.ownOf(request as ServedRequest, '/introspect');
  addIntrospection(app, { keys, ...from, toOf }, { allowOrigins, parts });
  addHealthChecks(app, keys, { allowOrigins, failures: parts.failures });
  const notFound = errorReply('NOT_FOUND', 'An edge only checks keys. Ask its origin for anything else.');
  app.notFound((c) => respond(c, notFound));
  app.onError((error, c) => {
    log?.error({ err: error }, 'a request failed');
    return respond(c, internalError(requestIdIn(c) ?? ''));
  });
  const addresses = new ClientAddresses(from.trust);
  return Object.assign(app, parts, {
    startedAt,
    shortcut: shortcutOf(places),
    addresses,
    routeContext: { places, check, ...parts },
  });
}
