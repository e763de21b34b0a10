import type { Config } from '@oclif/core/interfaces';
import type { SchemaExtension } from '../graphql/extension.ts';
import { type Catalog, createCatalog } from '../keys/permissions/catalog.ts';
import { KeysError } from '../keys/errors.ts';
import { parsePermissions } from '../keys/permissions/grants.ts';

/**
 * Asks the host CLI and its plugins for their parts of the schema, by the oclif hook `svc-api:schema`.
 * @throws KeysError SCHEMA_INVALID with the plugin's name when its hook fails or returns something else
 */
export async function hostExtensions(config: Config): Promise<SchemaExtension[]> {
  // All failures are captured: oclif would rethrow those that carry an exit code, without saying whose they are.
  const { successes, failures } = await config.runHook('svc-api:schema', {}, undefined, true);
  const [failed] = failures;
  if (failed) throw hookFailed(failed.plugin.name, failed.error);
  return successes
    .filter(({ result }) => result != null)
    .map(({ plugin, result }) => readExtension(plugin.name, result));
}

/** The names of the hosts' own resources. Resolvers are not loaded for it. */
export async function hostResources(config: Config): Promise<string[]> {
  return (await hostExtensions(config)).flatMap(({ resources }) => resources ?? []);
}

/** A catalog that is enough to read these permissions: the host is asked only where a resource is not built in. */
export async function catalogFor(permissions: readonly string[], config: Config): Promise<Catalog> {
  const builtIn = createCatalog();
  return parsePermissions(permissions, builtIn).issues.length === 0
    ? builtIn
    : createCatalog(await hostResources(config));
}

/** A hook is somebody else's JavaScript: what it returns is looked at before it is used. */
function readExtension(plugin: string, result: unknown): SchemaExtension {
  const { typeDefs, resolvers, resources = [] } = result as Partial<SchemaExtension>;
  if (typeDefs == null || resolvers == null || !Array.isArray(resources)) {
    throw hookFailed(
      plugin,
      new Error('It must return { typeDefs, resolvers, resources? }, with a list of resources.'),
    );
  }
  try {
    createCatalog(resources);
  } catch (error) {
    throw hookFailed(plugin, error);
  }
  return { typeDefs, resolvers, resources };
}

function hookFailed(plugin: string, cause: unknown): KeysError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new KeysError('SCHEMA_INVALID', `The hook svc-api:schema of ${plugin} failed: ${reason}`, { cause });
}
