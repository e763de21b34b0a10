import type { Config } from '@oclif/core/interfaces';
import type { SchemaExtension } from '../graphql/extension.ts';
import { createCatalog, type HostResource } from '../keys/permissions/catalog.ts';
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

/** The host's own resources. Its resolvers are not loaded. */
export async function hostResources(config: Config): Promise<HostResource[]> {
  return (await hostExtensions(config)).flatMap(({ resources }) => resources ?? []);
}

/** The host's resources, if these permissions need them: it is asked only if one of their resources is not built in. */
export async function hostResourcesFor(permissions: readonly string[], config: Config): Promise<HostResource[]> {
  return parsePermissions(permissions, createCatalog()).issues.length === 0 ? [] : hostResources(config);
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
