import type { Config as OclifConfig } from '@oclif/core/interfaces';
import type { Config } from '../../config/config.ts';
import { KeysError } from '../../keys/errors.ts';
import { withoutUndefined } from '../../keys/options.ts';
import type { CatalogAdditions } from '../../keys/permissions/catalog.ts';
import { hostResources } from '../host.ts';

/** What a file of configuration declares. */
export interface DeclaredRoutes extends Pick<Config, 'routes' | 'expect'> {
  /** An absolute path. */
  file: string;
  /** What the file and the host add to what can be granted. */
  additions: CatalogAdditions;
}

/**
 * Reads the routes of the configuration, whose expectations hold.
 * @param named the path that the user named
 * @param onUnmet is told of expectations that do not hold, if those are to be no failure
 * @throws KeysError CONFIG_…; CONFIG_UNAVAILABLE also where no file is named and there is none; SCHEMA_INVALID, USAGE
 */
export async function readDeclaredRoutes(
  oclif: OclifConfig,
  named: string | undefined,
  onUnmet?: (text: string) => void,
): Promise<DeclaredRoutes> {
  const [{ loadConfig }, ofHost] = await Promise.all([import('../../config/load-config.ts'), hostResources(oclif)]);
  const { file, routes, expect, resources, roles } = await loadConfig(
    withoutUndefined({ file: named, resources: ofHost, onUnmet }),
  );
  if (file === undefined) {
    const remedy = 'Pass --config <path>, or set SVC_API_CONFIG.';
    throw new KeysError('CONFIG_UNAVAILABLE', `There is no configuration. ${remedy}`);
  }
  return { file, routes, expect, additions: { resources: [...ofHost, ...resources], roles } };
}
