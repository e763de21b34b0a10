import { fileURLToPath } from 'node:url';
import { KeysError } from '../keys/basics/index.ts';

/** The oldest release of graphql 16 that has what is used of it. */
const OLDEST = [8, 1] as const;

/**
 * Makes sure that this package gets a graphql that it works with. To be called before anything is loaded that imports
 * graphql, which might not even have the names that are imported.
 * @throws KeysError GRAPHQL_UNSUPPORTED that says which release was found where, and what to do
 */
export async function checkGraphQLRelease(): Promise<void> {
  const { version } = await import('graphql');
  if (isSupported(version)) return;
  const place = fileURLToPath(new URL('.', import.meta.resolve('graphql')));
  const range = `^16.${OLDEST.join('.')}`;
  throw new KeysError(
    'GRAPHQL_UNSUPPORTED',
    `svc-api needs graphql ${range}, and gets graphql ${version} from ${place}. ` +
      'A package manager gives it a fitting one unless it is told otherwise: in your package.json, remove what sets ' +
      `the version of graphql for all packages ("overrides", "resolutions"), or write "graphql": "${range}" into ` +
      '"dependencies". Then install again, and run "npm dedupe".',
  );
}

/** Whether a release is one of 16 from 16.8.1 on. A preview of another is not. */
function isSupported(version: string): boolean {
  const [major, minor, patch] = version.split('.').map((part) => Number.parseInt(part, 10));
  const [minMinor, minPatch] = OLDEST;
  return major === 16 && (minor! > minMinor || (minor === minMinor && patch! >= minPatch));
}
