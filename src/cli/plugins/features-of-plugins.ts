import type { Config } from '@oclif/core/interfaces';
import { addFields, type FeatureOfFields, featuresFailed, invalidFeature, unreadable } from '../../keys/added/index.ts';
import { kindOf, printable } from '../../keys/basics/index.ts';
import { describeAddedFields } from './added-flags.ts';
import { ASKING, FEATURE_HOOK, resultsOf } from './hooks.ts';
import { takenNames } from './taken-names.ts';

/**
 * Adds the features of plugins. If one is invalid, none is added, and each of our commands refuses to run; those of a
 * host still work.
 * @param words the command line
 */
export async function addFeaturesOfPlugins(config: Config, words: readonly string[]): Promise<void> {
  try {
    await requireVersions(config);
    // The order of fields must not depend on which hook finishes first.
    const results = (await resultsOf(config, FEATURE_HOOK)).toSorted((one, other) =>
      one.plugin < other.plugin ? -1 : 1,
    );
    const silent = config
      .getPluginsList()
      .find(({ name, hooks }) => hooks[FEATURE_HOOK] && !results.some(({ plugin }) => plugin === name));
    if (silent)
      throw invalidFeature(
        silent.name,
        `Its hook ${FEATURE_HOOK} returned no feature. Export by default a function that returns one.`,
      );
    addFields(
      results.map(({ plugin, result }) => readFeature(plugin, result)),
      takenNames(),
    );
    if (words.some((word) => ASKING.has(word))) await describeAddedFields(config);
  } catch (error) {
    featuresFailed(error);
  }
}

/** Refuses a plugin made for other versions, by its package.json. @throws KeysError FEATURE_INVALID */
async function requireVersions(config: Config): Promise<void> {
  for (const { name, pjson, hooks } of config.getPluginsList()) {
    const { peerDependencies } = pjson as { peerDependencies?: Readonly<Record<string, unknown>> };
    const given = peerDependencies?.['svc-api'];
    if (given === undefined || !hooks[FEATURE_HOOK]) continue;
    const range = typeof given === 'string' ? given : JSON.stringify(given);
    const [{ default: satisfies }, { packageVersion }] = await Promise.all([
      import('semver/functions/satisfies.js'),
      import('../../version.ts'),
    ]);
    const version = packageVersion();
    if (!satisfies(version, range, { includePrerelease: true }))
      throw invalidFeature(
        name,
        `It is made for svc-api ${printable(range)}, by "peerDependencies" in its package.json; this is ${version}. ` +
          'Update one of the two, or uninstall the plugin.',
      );
  }
}

function readFeature(plugin: string, result: unknown): FeatureOfFields {
  if (typeof result !== 'object' || Array.isArray(result))
    throw invalidFeature(plugin, `Its hook ${FEATURE_HOOK} returned ${kindOf(result)}. Return an object with a name.`);
  if (nameOf(plugin, result as Partial<FeatureOfFields>) === plugin) return result as FeatureOfFields;
  throw invalidFeature(
    plugin,
    `The "name" that its hook ${FEATURE_HOOK} returns must be that of its package, "${plugin}".`,
  );
}

function nameOf(plugin: string, feature: Partial<FeatureOfFields>): string | undefined {
  try {
    return feature.name;
  } catch (error) {
    throw unreadable(plugin, error);
  }
}
