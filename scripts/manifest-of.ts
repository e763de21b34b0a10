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
  // The order in which folders are read differs from run to run.
  const commands = Object.entries(plugin.manifest.commands).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `${JSON.stringify({ ...plugin.manifest, commands: Object.fromEntries(commands) }, null, 2)}\n`;
}
