import type { GraphQLSchema } from 'graphql';
import { Hono, type MiddlewareHandler } from 'hono';
import { type BudgetLimits, Budgets, type CreateContext } from '../graphql/index.ts';
import type { IntrospectionMode } from './graphql-errors.ts';
import type { CredentialPlace } from '../keys/secret/index.ts';
import { LOOPBACK } from '../keys/basics/index.ts';
import type { Permission } from '../keys/permissions/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { AttemptCounter, Limited } from '../limits/index.ts';
import { type Log, NO_LOG } from '../log.ts';
import { admissionOf, type BearerEnv, ownBearerAuth, type OwnBearerEnv } from './bearer-auth.ts';
import { BearerCheck, type GuardedDiscovery } from './bearer-check.ts';
import { type CheckParts, partsOf } from './bearer-options.ts';
import { ClientAddresses } from './client-address.ts';
import { HonoHead, type Received, type RequestTo, type ServedRequest } from './received.ts';
import { Cors, corsBy, type CorsOptions, errorReply, respond } from './replies.ts';
import type { FailureLog, RefusalLog } from './refusal-log.ts';
import { GraphQLPipeline } from './graphql-pipeline.ts';
import { honoHandler } from './hono-request.ts';
import { Issuer, PROTECTED_RESOURCE } from './issuer.ts';
import { type Shortcut, type ShortcutParts, shortcutOf } from './shortcut.ts';
import {
  addHealthChecks,
  addHomePage,
  addIntrospection,
  type HomeLink,
  type NamedCommands,
  OWN_COMMANDS,
} from './plain-endpoints.ts';

/** Options of the service. */
export interface AppOptions {
  keys: KeysService & Limited;
  schema: GraphQLSchema;
  /** See `CreateAppOptions`. */
  context?: CreateContext | undefined;
  /** The start of the service, in milliseconds since 1970. */
  startedAt: number;
  limits?: Partial<BudgetLimits>;
  /** See `BearerAuthOptions`. */
  credentials?: readonly CredentialPlace[];
  trust?: readonly string[];
  failedCredentials?: string | false;
  introspection?: IntrospectionMode;
  cors?: CorsOptions;
  /** See `CreateAppOptions`. */
  publicUrl?: string | undefined;
  commands?: NamedCommands;
  log?: Log;
  /** The app that this one replaces, whose counts in logs it continues. */
  replaces?: CheckParts | undefined;
}

/** The service as a Hono app, with parts that `listen` uses. */
export type ServiceApp = HttpApp & {
  /** Answers requests of Node for `/graphql` and `/auth`, for which Hono takes too long. */
  readonly shortcut: Shortcut;
  /** Logs refusals, with repetitions counted. */
  readonly refusals: RefusalLog;
  /** Logs failures of the store, with repetitions counted. */
  readonly failures: FailureLog;
  /** Counts invalid credentials; undefined if their number is not limited. */
  readonly failedCredentials: AttemptCounter | undefined;
  /** The start of the service, in milliseconds since 1970. */
  readonly startedAt: number;
  /** Determines the addresses of clients. */
  readonly addresses: ClientAddresses;
};

/** An app for endpoints. */
export type HttpApp = Hono<BearerEnv>;

/** The endpoints of the core, and parts of them for the endpoints of features. */
export type CoreApp = HttpApp &
  Pick<ServiceApp, keyof CheckParts | 'startedAt' | 'addresses' | 'shortcut'> & {
    readonly routeContext: RouteContext;
  };

/** Places of an app that are filled while endpoints are added to it. */
export interface AppPlaces extends ShortcutParts {
  /** Tells clients where to get keys for services behind a proxy. */
  guarded?: GuardedDiscovery;
  /** True if refused clients learn where to get a key. */
  tellsClients?: boolean;
  /** Links on the page at `/`. */
  readonly links: HomeLink[];
}

/** Parts of an app for endpoints that are added to it. */
export interface RouteContext extends CheckParts {
  readonly places: AppPlaces;
  /** Checks keys in requests, in all configured places. */
  readonly check: BearerCheck;
  readonly keys: KeysService & Limited;
  readonly addresses: ClientAddresses;
  /** The address of this service, as clients know it. */
  readonly issuer: Issuer;
  /** Checks keys from forms, whatever the configured places. */
  readonly formCheck: BearerCheck;
  /** Lets pages of the configured origins call an endpoint. */
  readonly allowOrigins: MiddlewareHandler;
  /** Checks the keys of requests for a path, which need the permission. */
  readonly bearer: (
    path: string,
    permission: Permission,
  ) => { check: BearerCheck; auth: MiddlewareHandler<OwnBearerEnv> };
}

/**
 * The service: `/graphql` and `/introspect` behind the bearer check, health checks and a page at `/`, and 404 as JSON
 * for everything else.
 */
export function createHttpApp({
  keys,
  schema,
  context,
  startedAt,
  limits,
  introspection = 'on',
  cors: corsOptions,
  publicUrl,
  commands = OWN_COMMANDS,
  log = NO_LOG,
  replaces,
  ...from
}: AppOptions): CoreApp {
  const app = new Hono<BearerEnv>();
  const parts = partsOf({ log, ...from }, replaces);
  const addresses = new ClientAddresses(from.trust);
  const issuer = new Issuer(publicUrl, from.trust ?? LOOPBACK);
  const links: HomeLink[] = [];
  const at = (endpoint: string) => ({
    toOf: (request: Received) => issuer.ownOf(request as ServedRequest, endpoint),
    isOwn: (to: RequestTo) => places.guarded?.isOwn(to) === true,
    discover: (request: Received) => {
      if (!places.tellsClients) return undefined;
      if (request.to) return places.guarded?.find(request.to);
      const { scheme, host, target } = issuer.to(request as ServedRequest, endpoint);
      return { metadata: `${scheme}://${host}${PROTECTED_RESOURCE}${target}`, scope: [] };
    },
  });
  const check = new BearerCheck({ keys, ...from, ...at('/graphql') }, parts);
  const cors = new Cors(corsOptions);
  const pipeline = new GraphQLPipeline({
    schema,
    createContext: context,
    check,
    budgets: new Budgets(limits),
    introspection,
    log,
  });
  const places: AppPlaces = { graphql: { check, cors, pipeline }, links };
  const allowOrigins = corsBy(cors);
  const answer = honoHandler((request, c) => pipeline.answer(request, admissionOf(c)));
  app.all('/graphql', allowOrigins, ownBearerAuth(check), answer);
  addIntrospection(app, { keys, ...from, toOf: at('/introspect').toOf }, { allowOrigins, parts });
  const bearer: RouteContext['bearer'] = (path, permission) => {
    const checked = new BearerCheck({ keys, permission, ...from, toOf: at(path).toOf }, parts);
    return { check: checked, auth: ownBearerAuth(checked) };
  };
  addHealthChecks(app, keys, { allowOrigins, failures: parts.failures });
  addHomePage(app, { links, commands });
  const { credentials: _, ...fromForms } = from;
  const formCheck = new BearerCheck({ keys, ...fromForms }, parts);
  const notFound = errorReply('NOT_FOUND', 'There is nothing at this address. GraphQL is at POST /graphql.');
  app.notFound(async (c) => (await allowOrigins(c, async () => void (c.res = respond(c, notFound)))) ?? c.res);
  app.onError((error, c) =>
    // An HTTPException has an answer of its own: endpoints and middlewares refuse requests with it.
    'getResponse' in error ? error.getResponse() : respond(c, pipeline.failed(error, new HonoHead(c))),
  );
  return Object.assign(app, parts, {
    startedAt,
    shortcut: shortcutOf(places),
    addresses,
    routeContext: { keys, places, check, addresses, issuer, formCheck, allowOrigins, bearer, ...parts },
  });
}

/** Adds endpoints that handle errors of their own: `onError` of their app concerns no other endpoint. */
export async function addApart(app: HttpApp, add: (own: HttpApp) => Promise<unknown>): Promise<void> {
  const own: HttpApp = new Hono();
  await add(own);
  app.route('/', own);
}
