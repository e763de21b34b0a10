import type { Config } from '@oclif/core/interfaces';
import type { SchemaExtension } from '../graphql/extension.ts';
import { type Catalog, createCatalog } from '../keys/catalog.ts';
import { parsePermissions } from '../keys/grants.ts';
import { CliError } from './errors.ts';

/**
 * Asks the host CLI and its plugins for their parts of the schema, by the oclif hook `svc-api:schema`.
 * @throws CliError USAGE with the plugin's name when its hook fails
 */
export async function hostExtensions(config: Config): Promise<SchemaExtension[]> {
  const { successes, failures } = await config.runHook('svc-api:schema', {});
  const [failed] = failures;
  if (failed)
    throw new CliError('USAGE', `The hook svc-api:schema of ${failed.plugin.name} failed: ${failed.error.message}`, {
      cause: failed.error,
    });
  return successes.map(({ result }) => result as SchemaExtension).filter((extension) => extension != null);
}

/** The names of the hosts' own resources. Resolvers are not loaded for it. */
export async function hostResources(config: Config): Promise<string[]> {
  return (await hostExtensions(config)).flatMap(({ resources }) => resources ?? []);
}

/** A catalog that is enough to read these permissions: the host is asked only where a resource is not built in. */
export async function catalogFor(permissions: readonly string[], config: Config): Promise<Catalog> {
  const builtIn = createCatalog();
  return parsePermissions(permissions, builtIn).faults.length === 0 ? builtIn : createCatalog(await hostResources(config));
}
