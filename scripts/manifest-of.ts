import { fileURLToPath } from 'node:url';
import { Plugin } from '@oclif/core/config';
import { shortId } from './own-commands.ts';

/** What hosts read of the commands, and what our own program reads. */
export interface Manifests {
  readonly host: string;
  readonly own: string;
}

/**
 * The manifests of the built commands, as texts. Our own program lies in `dist`, and has short names that a host does
 * not get; it shows those alone.
 */
export async function manifestsOf(): Promise<Manifests> {
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
  const own = commands.flatMap(([id, command]): typeof commands => {
    const inDist = { ...command, relativePath: command.relativePath!.slice(1) };
    const short = shortId(id);
    return short === undefined
      ? [[id, inDist]]
      : [
          [id, { ...inDist, hidden: true }],
          [short, { ...inDist, id: short }],
        ];
  });
  const withCommands = (entries: typeof commands) => ({ ...plugin.manifest, commands: Object.fromEntries(entries) });
  // Each start of our own program reads its manifest: it has no blanks.
  return { host: `${JSON.stringify(withCommands(commands), null, 2)}\n`, own: JSON.stringify(withCommands(own)) };
}
