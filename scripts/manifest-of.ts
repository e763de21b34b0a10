import { fileURLToPath } from 'node:url';
import type { Command } from '@oclif/core/command';
import { Plugin } from '@oclif/core/config';
import { FEATURES } from '../src/features/index.ts';
import { ownCommands } from './own-commands.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * The manifest of the built commands, and of the features that a host can choose, as text. Our own program adds the
 * short names of commands at its start.
 */
export async function manifestOf(): Promise<string> {
  const plugin = new Plugin({
    root,
    type: 'core',
    ignoreManifest: true,
    errorOnManifestCreate: true,
    respectNoCacheDefault: true,
  });
  await plugin.load();
  // Sorted, since the order of reading folders differs between runs.
  const commands = Object.entries(plugin.manifest.commands).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const featureOf = new Map(ownCommands(root).map(({ id, feature }) => [id, feature]));
  const manifest = {
    ...plugin.manifest,
    commands: Object.fromEntries(
      commands.map(([id, command]) => [
        id,
        {
          ...command,
          flags: flagsOf(id, command),
          feature: featureOf.get(id),
          formsOf: FEATURES.flatMap(({ name, commands = {} }) => (commands[id]?.form ? name : [])),
        },
      ]),
    ),
    features: Object.fromEntries(FEATURES.map(({ name, needs = [] }) => [name, needs])),
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** The flags of a command, those of features with the names of these. */
function flagsOf(id: string, { flags }: Command.Cached): object {
  const added = FEATURES.flatMap(({ name, commands = {} }) =>
    Object.keys(commands[id]?.flags ?? {}).map((flag) => [flag, { ...flags[flag], feature: name }]),
  );
  return { ...flags, ...Object.fromEntries(added) };
}
