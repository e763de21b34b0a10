import type { Config } from '@oclif/core/interfaces';
import type { SchemaExtension } from '../graphql/extension.ts';
import { type Catalog, createCatalog } from '../keys/permissions/catalog.ts';
import { KeysError } from '../keys/errors.ts';
import { parsePermissions } from '../keys/permissions/grants.ts';

/**
 * Collects the schema extensions of the host CLI and its plugins, by the oclif hook `svc-api:schema`.
 * @throws KeysError SCHEMA_INVALID, naming the plugin whose hook fails or returns something else
 */
export async function hostExtensions(config: Config): Promise<SchemaExtension[]> {
  // All failures are captured: oclif would rethrow those with an exit code, without naming the plugin.
  const { successes, failures } = await config.runHook('svc-api:schema', {}, undefined, true);
  const [failed] = failures;
  if (failed) throw hookFailed(failed.plugin.name, failed.error);
  return successes
    .filter(({ result }) => result != null)
    .map(({ plugin, result }) => readExtension(plugin.name, result));
}

/** The names of the host's own resources. Its resolvers are not loaded. */
export async function hostResources(config: Config): Promise<string[]> {
  return (await hostExtensions(config)).flatMap(({ resources }) => resources ?? []);
}

/** A catalog for reading these permissions. The host is asked only if one of their resources is not built in. */
export async function catalogFor(permissions: readonly string[], config: Config): Promise<Catalog> {
  const builtIn = createCatalog();
  return parsePermissions(permissions, builtIn).issues.length === 0
    ? builtIn
    : createCatalog(await hostResources(config));
}

/** Validates what a hook returned: hooks are other people's JavaScript. */
function readExtension(plugin: string, result: unknown): SchemaExtension {
  const { typeDefs, resolvers, resources = [] } = result as Partial<SchemaExtension>;
  if (typeDefs == null || resolvers == null || !Array.isArray(resources)) {
    throw hookFailed(
      plugin,
      new Error('It must return { typeDefs, resolvers, resources? }, where resources is a list.'),
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
