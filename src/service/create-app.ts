import type { Config } from '../config/config.ts';
import type { BudgetLimits, CreateContext, OwnSchema, RequiredByField, SchemaExtension } from '../graphql/index.ts';
import type { FeatureContext, OwnFeature } from '../feature.ts';
import type { HttpApp, ServiceApp } from '../http/app.ts';
import {
  aFunction,
  COMMON_OPTIONS,
  type CorsOptions,
  type IntrospectionMode,
  listen,
  type NamedCommands,
  OWN_COMMANDS,
  type OpenedStore,
  permissionOptions,
} from '../http/index.ts';
import { BEARER_ALONE, type CredentialPlace } from '../keys/secret/index.ts';
import {
  amount,
  anything,
  checkOptions,
  having,
  invalidOption,
  invalidOrigin,
  invalidPublicUrl,
  list,
  LOOPBACK,
  oneOf,
  options as optionsIn,
  recordOf,
  type Rule,
  type Rules,
  text,
  withoutUndefined,
  yesOrNo,
  printable,
} from '../keys/basics/index.ts';
import { type Catalog, HOST_ACTIONS, HOST_RESOURCES } from '../keys/permissions/index.ts';
import { SERVICE } from '../keys/service/index.ts';
import { invalidFeature, isAdded, workOf } from '../keys/added/index.ts';
import type { Log } from '../log.ts';
import type { OpenedService, StartService } from './configured-server.ts';
import { packageVersion } from '../version.ts';

/** Options of `createApp`. */
export interface CreateAppOptions {
  /** An open key store, see `openKeys`. */
  keys: OpenedStore;
  /** The host's own parts of the schema. Their resources must be passed to `openKeys`. */
  extensions?: readonly SchemaExtension[];
  /**
   * A schema that the program made with a library, such as Pothos, Nexus or TypeGraphQL. It is served beside the
   * built-in part, and must not have types or root fields of the same names.
   */
  schema?: OwnSchema;
  /**
   * The permissions required by each root field of `schema`, and by other fields that require any: a permission, or a
   * list of which all are required, by the field's path, such as `{ 'Query.pets': 'PET:READ_ANY' }`.
   */
  requires?: RequiredByField;
  /**
   * Makes further properties of the resolvers' context, besides `principal`, `request` and `signal`, once for each
   * request that is executed. A `GraphQLError` that it throws is sent to the client; any other error is logged.
   */
  context?: CreateContext;
  /**
   * The contents of `svc-api.yaml`, see `loadConfig`; other options take precedence. Its resources, roles, default
   * limits, policy and consent must be passed to `openKeys`.
   */
  config?: Config;
  /** Limits of one request that differ from the default. */
  limits?: Partial<BudgetLimits>;
  /** The places of keys in requests. Default: `['bearer']`. */
  credentials?: readonly CredentialPlace[];
  /** Networks of proxies whose `X-Forwarded-For` and `Forwarded` headers are trusted. Default: this machine. */
  trust?: readonly string[];
  /** The keys that can read the schema by introspection: all, none, or those with PERMISSION:READ_ANY. Default: all. */
  introspection?: IntrospectionMode;
  /** Pages of other origins that can call the service from a browser. Default: none. */
  cors?: CorsOptions;
  /**
   * The address at which clients reach the service, including the path it is mounted at, such as
   * `https://keys.example.org`. Default: the one that a request was sent to.
   */
  publicUrl?: string;
  /** See `BearerAuthOptions`. */
  failedCredentials?: string | false;
  /**
   * Serves the console at `/console`: pages for managing keys. It needs the feature `console`, which a program can
   * leave out. Default: no.
   */
  console?: boolean;
  /** Default: nothing is logged. */
  log?: Log;
  /**
   * The app that this one replaces, see `RunningServer.replaceApp`. Its log counts and its start time are continued.
   */
  replaces?: ServiceApp;
}

const OPTIONS = {
  ...COMMON_OPTIONS,
  extensions: list(
    optionsIn<SchemaExtension>({
      typeDefs: anything,
      resolvers: anything,
      resources: HOST_RESOURCES,
      actions: HOST_ACTIONS,
      name: text,
    }),
  ),
  schema: having<OwnSchema>('a schema of graphql', 'getTypeMap', 'getQueryType', 'getMutationType'),
  context: aFunction,
  config: having<Config>('what loadConfig gives', 'resources', 'trust', 'limits'),
  limits: optionsIn<Partial<BudgetLimits>>({
    cost: amount,
    nodes: amount,
    characters: amount,
    timeMs: amount,
    waitMs: amount,
  }),
  introspection: oneOf('on', 'off', 'permitted'),
  cors: optionsIn<CorsOptions>({ origins: list((value, name) => text(value, name) ?? invalidOrigin(value as string)) }),
  publicUrl: (value, name) => text(value, name) ?? invalidPublicUrl(value as string),
  console: yesOrNo,
  replaces: having<ServiceApp>('what createApp gives', 'startedAt', 'refusals', 'failures'),
} satisfies Partial<Rules<CreateAppOptions>>;

/** Rules for options that features add to those of `createApp`. */
async function addedRules(features: readonly OwnFeature[]): Promise<Rules<object>> {
  const rules = features.flatMap(({ provides }) => provides?.['appOptions'] ?? []);
  return Object.assign({}, ...(await Promise.all(rules.map((load) => load())))) as Rules<object>;
}

/** A permission, or a list of permissions, for each field. */
function requirements(catalog: () => Catalog): Rule<RequiredByField> {
  const { permission, all } = permissionOptions(catalog);
  return recordOf((value, name) => (Array.isArray(value) ? all : permission)?.(value, name));
}

/**
 * Creates the whole service as a Hono app: `/graphql`, `/introspect`, `/auth/…` for proxies, `/healthz` and `/readyz`,
 * and, if wanted, a console at `/console`. It does no work in the background, such as sending notices.
 * @throws KeysError OPTION_INVALID; SCHEMA_INVALID if an extension of the schema is invalid; GRAPHQL_UNSUPPORTED; FEATURE_INVALID
 * @example
 * const app = await createApp({ keys: await openKeys() });
 * const server = await listen({ app, host: '127.0.0.1', port: 4000 });
 */
export function createApp(options: CreateAppOptions): Promise<ServiceApp> {
  return createAppOf(options, OWN_COMMANDS);
}

/**
 * @param commands those that pages mention
 * @param documents those of applications that describe themselves; default: from the configuration
 * @param isWorker see `FeatureContext`
 */
export async function createAppOf(
  options: CreateAppOptions,
  commands: NamedCommands,
  { isWorker = false, ...more }: { documents?: object; isWorker?: boolean } = {},
): Promise<ServiceApp> {
  const { allFeatures } = await import('../features/index.ts');
  const features = allFeatures();
  checkOptions<object>('createApp', options, {
    ...OPTIONS,
    requires: requirements(() => options.keys[SERVICE].catalog),
    ...(await addedRules(features)),
  });
  const { keys: store, extensions, schema: own, requires, config, console = false, ...others } = options;
  const keys = store[SERVICE];
  if (requires && !own)
    throw invalidOption('createApp', '"requires" is given without "schema", whose fields it names.');
  // Imported first: with an unsuitable graphql, the rest might not even load.
  const { checkGraphQLRelease } = await import('../graphql/release.ts');
  await checkGraphQLRelease();
  const [{ createSchema }, { addApart, createHttpApp }, { describeService }] = await Promise.all([
    import('../graphql/schema.ts'),
    import('../http/app.ts'),
    import('./describe-service.ts'),
  ]);
  const startedAt = others.replaces?.startedAt ?? Date.now();
  const info = { name: 'svc-api', version: packageVersion(), startedAt };
  const configured = config && {
    credentials: config.credentials,
    trust: config.trust.texts,
    cors: config.cors,
    introspection: config.introspection,
    publicUrl: config.publicUrl,
    failedCredentials: config.limits.failedCredentials,
  };
  const described = describeService({ ...configured, ...others });
  const schema = await createSchema(
    keys,
    info,
    { features, config, extensions, own: own && { schema: own, requires: requires ?? {} } },
    described,
  );
  const publicUrl = others.publicUrl ?? configured?.publicUrl;
  const parts = { keys, schema, startedAt, commands };
  const app = createHttpApp({
    ...parts,
    ...configured,
    ...others,
  });
  const context: FeatureContext = {
    ...app.routeContext,
    config,
    options: { ...options, ...more },
    console,
    credentials: others.credentials ?? configured?.credentials ?? BEARER_ALONE,
    trust: others.trust ?? configured?.trust ?? LOOPBACK,
    publicUrl,
    commands,
    features,
    isWorker,
    replaces: others.replaces,
  };
  const owners = new Map<HttpApp['routes'][number], string>();
  for (const feature of features) {
    const add = (to: HttpApp) => workOf(feature, 'routes', () => feature.routes?.(to, context));
    if (!isAdded(feature)) {
      await add(app);
      continue;
    }
    const present = app.routes.slice();
    await addApart(app, add);
    checkPaths(feature.name, app.routes.slice(present.length), present, owners);
  }
  return app;
}

/**
 * Refuses endpoints of a plugin that would never answer, because others take their paths.
 * @throws KeysError FEATURE_INVALID
 */
function checkPaths(
  name: string,
  added: HttpApp['routes'],
  present: HttpApp['routes'],
  owners: Map<HttpApp['routes'][number], string>,
): void {
  for (const route of added) {
    const { path, method } = route;
    owners.set(route, name);
    const taken = present.find(
      (other) =>
        (other.path === path || (other.path.length > 2 && isWithin(path, other.path))) &&
        (method === other.method || method === 'ALL' || other.method === 'ALL'),
    );
    if (taken) {
      const other = printable(owners.get(taken) ?? 'svc-api');
      throw invalidFeature(
        name,
        `Its endpoint ${path} has a path that ${other} answers at. Give it a path of its own.`,
      );
    }
  }
}

/** True for paths that a pattern of Hono with a final `*` covers. */
function isWithin(path: string, pattern: string): boolean {
  return pattern.endsWith('/*') && `${path}/`.startsWith(pattern.slice(0, -1));
}

/** The parts of an app that a command chooses. */
interface ServedApp {
  readonly console: boolean;
  readonly commands?: NamedCommands;
  /** See `FeatureContext`. */
  readonly isWorker?: boolean;
}

/** Serves the app. Throws KeysError SCHEMA_INVALID, GRAPHQL_UNSUPPORTED, LISTEN_FAILED, TLS_INVALID. */
export const serveApp =
  ({ console, commands = OWN_COMMANDS, isWorker = false }: ServedApp): StartService =>
  async (opened, options) => {
    const logged = options.log && { log: options.log };
    let hasConsole = false as boolean;
    const served = await servedBy(async (changed, replaces) => {
      const app = await createAppOf({ ...changed, ...logged, console, ...(replaces && { replaces }) }, commands, {
        isWorker,
      });
      hasConsole = app.routes.some(({ path }) => path === '/console');
      return app;
    })(opened, options);
    const { url } = served.server;
    return { ...served, details: { ...(hasConsole && options.socket === undefined && { console: `${url}/console` }) } };
  };

/** Serves an app, and replaces it when the configuration changes. */
export const servedBy =
  (create: (opened: OpenedService, replaces?: ServiceApp) => Promise<ServiceApp>): StartService =>
  async (opened, options) => {
    let app = await create(opened);
    const server = await listen(withoutUndefined({ ...options, app }));
    return {
      server,
      prepare: async (changed) => {
        const next = await create(changed, app);
        return () => {
          server.replaceApp(next);
          app = next;
        };
      },
      stop: () => server.stop(),
    };
  };
