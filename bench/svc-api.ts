import type { SERVICE } from '../src/keys/service/index.ts';
import type { OpenKeys, OpenKeysOptions } from '../src/service/open-keys.ts';

/** The build, as users get it. The types are those of the sources, so that checking them needs no build. */
const library = (await import(new URL('../dist/index.js', import.meta.url).href)) as typeof import('../src/index.ts');
export const { bearerAuth, createApp, listen, loadConfig, OPERATOR } = library;

/** The service behind the library's keys, which has what is measured. */
export async function openKeys(options: OpenKeysOptions): Promise<OpenKeys> {
  return (await library.openKeys(options))[Symbol.for('svc-api.service') as typeof SERVICE];
}
