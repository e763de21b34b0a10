import { fileURLToPath } from 'node:url';
import { KeysError } from '../keys/basics/index.ts';

/** The oldest version of graphql 16 with everything that is used here. */
const OLDEST = [8, 1] as const;

/**
 * Checks that this package gets a compatible graphql. Call it before loading any module that imports graphql, since
 * imported names may be missing.
 * @throws KeysError GRAPHQL_UNSUPPORTED with the version found, its location, and the remedy
 */
export async function checkGraphQLRelease(): Promise<void> {
  const { version } = await import('graphql');
  if (isSupported(version)) return;
  const place = fileURLToPath(new URL('.', import.meta.resolve('graphql')));
  const range = `^16.${OLDEST.join('.')}`;
  throw new KeysError(
    'GRAPHQL_UNSUPPORTED',
    `svc-api needs graphql ${range}, and gets graphql ${version} from ${place}. ` +
      'In your package.json, remove the setting that fixes the version of graphql for all packages ("overrides", ' +
      `"resolutions"), or add "graphql": "${range}" to "dependencies". Then install again, and run "npm dedupe".`,
  );
}

/** True for version 16 from 16.8.1 on. Previews of others do not count. */
function isSupported(version: string): boolean {
  const [major, minor, patch] = version.split('.').map((part) => Number.parseInt(part, 10));
  const [minMinor, minPatch] = OLDEST;
  return major === 16 && (minor! > minMinor || (minor === minMinor && patch! >= minPatch));
}
