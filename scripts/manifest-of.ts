import { fileURLToPath } from 'node:url';
import { Plugin } from '@oclif/core/config';

/** The manifest of the built commands, as a text. Our own program adds the short names of commands as it starts. */
export async function manifestOf(): Promise<string> {
  const plugin = new Plugin({
    root: fileURLToPath(new URL('..', import.meta.url)),
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
