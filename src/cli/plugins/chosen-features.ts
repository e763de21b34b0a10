import type { Command } from '@oclif/core/command';
import type { Config, Topic } from '@oclif/core/interfaces';
import { chooseFeatures, featuresFailed, isChosen, type KnownFeatures } from '../../keys/added/index.ts';
import { invalidPrefix } from '../../keys/secret/index.ts';
import { KeysError, printable } from '../../keys/basics/index.ts';
import { ASKING } from './hooks.ts';

/** Members of oclif's `Config` that have no method for removing entries. */
interface Known {
  _commandIDs?: unknown;
  readonly _commands: Map<string, Command.Loadable>;
  readonly _topics: Map<string, Topic>;
  readonly commandPermutations: Map<string, Set<string>> & { readonly validPermutations: Map<string, string> };
}

/**
 * Chooses the features in a host's package.json, and removes the commands and flags of all others from oclif. If the choice is
 * invalid, each of our commands refuses to run; those of the host still work.
 * @param settings the host's "svc-api" in its package.json
 * @param words the command line
 */
export async function chooseForHost(config: Config, settings: unknown, words: readonly string[]): Promise<void> {
  try {
    const own = config.getPluginsList().find(({ name }) => name === 'svc-api');
    const names = namesIn(config, settings);
    if (!own || !names) return;
    const { manifest } = own as unknown as { manifest: { features: KnownFeatures } };
    chooseFeatures(names, manifest.features, `The package.json of ${config.name}`);
    leaveOut(config, own.commands.filter(isLeftOut));
    own.commands = own.commands.filter((command) => !isLeftOut(command));
    for (const { flags } of own.commands)
      for (const [name, flag] of Object.entries(flags)) if (isLeftOut(flag)) delete flags[name];
    if (words.some((word) => ASKING.has(word))) await Promise.all(own.commands.map(describeForms));
  } catch (error) {
    featuresFailed(error);
  }
}

/** Describes a command without the forms of features that were not chosen. The manifest of the build has all of them. */
async function describeForms(command: Command.Loadable): Promise<void> {
  const { formsOf = [] } = command as { formsOf?: readonly string[] };
  if (formsOf.every((feature) => isChosen(feature))) return;
  const { description, usage, examples, args } = await command.load();
  Object.assign(command, { description, usage, examples });
  for (const [name, arg] of Object.entries(command.args)) arg.description = args[name]?.description;
}

/** True for a command or flag in the manifest of a feature that was not chosen. */
function isLeftOut(entry: object): boolean {
  const { feature } = entry as { feature?: unknown };
  return typeof feature === 'string' && !isChosen(feature);
}

/** @throws KeysError HOST_INVALID */
function namesIn({ name }: Config, settings: unknown): string[] | undefined {
  const invalid = (setting: string, problem: string) =>
    new KeysError('HOST_INVALID', `In the package.json of ${name}, "svc-api"${setting} ${problem}`);
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings))
    throw invalid('', 'must be an object, such as { "features": ["apply"] }.');
  const { features, prefix, ...others } = settings as Record<string, unknown>;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw invalid(`["${printable(unknown)}"]`, 'is not a setting. The settings are "features" and "prefix".');
  if (prefix !== undefined && (typeof prefix !== 'string' || invalidPrefix(prefix) !== undefined))
    throw invalid('.prefix', 'must be 2 to 12 letters and digits, such as "acme".');
  if (features === undefined) return undefined;
  if (!Array.isArray(features) || !features.every((each) => typeof each === 'string'))
    throw invalid('.features', 'must be a list of names of features, such as ["apply", "backup"].');
  return features;
}

/** Removes commands from oclif, with the topics that have no others. */
function leaveOut(config: Config, commands: readonly Command.Loadable[]): void {
  const known = config as unknown as Known;
  const { _commands, _topics, commandPermutations } = known;
  for (const { id } of commands) {
    if (_commands.get(id)?.pluginName !== 'svc-api') continue;
    _commands.delete(id);
    // The entries of a CLI with flexible taxonomy.
    for (const ids of commandPermutations.values()) ids.delete(id);
    for (const [words, of] of commandPermutations.validPermutations)
      if (of === id) commandPermutations.validPermutations.delete(words);
  }
  known._commandIDs = undefined;
  const left = Array.from(_commands.values());
  for (const topic of commands.flatMap(({ id }) => topicsAbove(id)))
    if (!left.some(({ id, hidden }) => !hidden && `${id}:`.startsWith(`${topic}:`))) _topics.delete(topic);
}

/** The topics of a command, including one with its own name. */
function topicsAbove(id: string): string[] {
  const words = id.split(':');
  return words.map((_, index) => words.slice(0, index + 1).join(':'));
}
