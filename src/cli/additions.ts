import type { Config } from '@oclif/core/interfaces';
import { type CatalogAdditions, createCatalog } from '../keys/permissions/catalog.ts';
import { parsePermissions } from '../keys/permissions/grants.ts';
import { debug } from '../keys/steps.ts';
import { hostResources } from './host.ts';

/** For whom something is granted, and what. */
export interface AdditionsOptions {
  /** The CLI that we are, or are a plugin of. */
  config: Config;
  /** The path of the configuration that the user named. */
  file: string | undefined;
  /** Default: the environment of the process. */
  env?: NodeJS.ProcessEnv;
  /** All permissions that are concerned, as written. Where all are built in, and there is no file, no host is asked. */
  permissions?: readonly string[] | undefined;
}

/**
 * What the host and svc-api.yaml add to what can be granted, and what is demanded of keys.
 * @throws KeysError CONFIG_…, SCHEMA_INVALID, USAGE
 */
export async function additionsOf({
  config,
  file,
  env = process.env,
  permissions,
}: AdditionsOptions): Promise<CatalogAdditions> {
  const { configLocation, readConfigFile } = await import('../config/config-file.ts');
  const location = configLocation(file, env);
  const found = location && readConfigFile(location);
  const declaredIn = location?.path;
  if (!found) {
    const needsHost = !permissions || !areBuiltIn(permissions);
    if (!needsHost) debug('the hooks of the host were not asked', () => ({ reason: 'all grants are built in' }));
    return { resources: needsHost ? await hostResources(config) : [], declaredIn };
  }
  const ofHost = await hostResources(config);
  const { parseConfig } = await import('../config/load-config.ts');
  const { resources, roles, policy, consent } = await parseConfig(found, ofHost);
  return { resources: [...ofHost, ...resources], roles, policy, consent, declaredIn };
}

function areBuiltIn(permissions: readonly string[]): boolean {
  return parsePermissions(permissions, createCatalog()).issues.length === 0;
}
