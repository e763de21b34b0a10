import { fileURLToPath } from 'node:url';
import { Plugin } from '@oclif/core/config';

/** The manifest of the built commands, as text. */
export async function manifestOf(): Promise<string> {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const plugin = new Plugin({
    root,
    type: 'core',
    ignoreManifest: true,
    errorOnManifestCreate: true,
    respectNoCacheDefault: true,
  });
  await plugin.load();
  return `${JSON.stringify(plugin.manifest, null, 2)}\n`;
}
