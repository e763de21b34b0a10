import type { BudgetLimits } from './graphql/budget/request-budget.ts';
import type { SchemaExtension } from './graphql/extension.ts';
import { checkGraphQLRelease } from './graphql/release.ts';
import type { ServiceApp } from './http/app.ts';
import type { KeysService } from './keys/service.ts';
import type { Log } from './log.ts';
import { packageVersion } from './version.ts';

/** What the service is made of. */
export interface CreateAppOptions {
  /** The service of an open key store, see `openKeys`. */
  keys: KeysService;
  /** The host's own parts of the schema. Their resources must be passed to `openKeys`. */
  extensions?: readonly SchemaExtension[];
  /** What one request may take, where it differs from the default. */
  limits?: Partial<BudgetLimits>;
  /** Default: nothing is logged. */
  log?: Log;
}

/**
 * Creates the whole service as a Hono app: `/graphql`, `/healthz` and `/readyz`.
 * @throws KeysError SCHEMA_INVALID if an extension of the schema is invalid; GRAPHQL_UNSUPPORTED if graphql is
 * @example
 * const app = await createApp({ keys: await openKeys() });
 * const server = await listen({ app, host: '127.0.0.1', port: 4000 });
 */
export async function createApp({ keys, extensions, limits, log }: CreateAppOptions): Promise<ServiceApp> {
  await checkGraphQLRelease();
  const [{ createSchema }, { createHttpApp }] = await Promise.all([
    import('./graphql/schema.ts'),
    import('./http/app.ts'),
  ]);
  const info = { name: 'svc-api', version: packageVersion(), startedAt: Date.now() };
  const schema = await createSchema(keys, info, extensions);
  return createHttpApp({ keys, schema, ...(limits && { limits }), ...(log && { log }) });
}
