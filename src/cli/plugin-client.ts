import type { Config } from '@oclif/core/interfaces';
import { requireFeatures } from '../keys/added/index.ts';
import type { OperationsClient } from '../keys/operations/index.ts';
import { additionsOf, hostDatabase } from './host.ts';
import { commandText } from './output.ts';
import { type PlaceFlags, remotePlace, serverTarget, storePlace, withAdministration } from './with-keys.ts';

/**
 * Works on the keys of an existing store, or of a server, for a command of a plugin.
 * @throws KeysError FEATURE_INVALID, USAGE, UNAUTHENTICATED, SERVER_…, STORE_…; errors of `work`
 */
export async function withPluginClient<Result>(
  config: Config,
  { database, config: file, ...flags }: PlaceFlags & { config?: string | undefined },
  work: (client: OperationsClient) => Promise<Result>,
): Promise<Result> {
  requireFeatures();
  const target = await serverTarget({ ...flags, database }, process.env, commandText(config, 'apikey:login'));
  const chosen = database ?? (process.env['SVC_API_DATABASE'] ? undefined : hostDatabase(config));
  const place = target
    ? await remotePlace(target)
    : storePlace(chosen, (permissions) => additionsOf({ config, file, permissions }));
  return withAdministration(place, { ifMissing: 'fail' }, work);
}
