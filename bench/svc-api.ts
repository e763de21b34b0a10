import type { SERVICE } from '../src/keys/service/index.ts';
import type { OpenKeys, OpenKeysOptions } from '../src/service/open-keys.ts';

/** The build, with the types of the sources, so that type checking needs no build. */
const library = (await import(new URL('../dist/index.js', import.meta.url).href)) as typeof import('../src/index.ts');
export const { bearerAuth, createApp, listen, loadConfig, OPERATOR } = library;

/** The service behind the library's keys, for what the library does not expose. */
export async function openKeys(options: OpenKeysOptions): Promise<OpenKeys> {
  return (await library.openKeys(options))[Symbol.for('svc-api.service') as typeof SERVICE];
}
