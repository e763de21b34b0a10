import type { Config, Hook } from '@oclif/core/interfaces';
import { topicsOf, verbLines } from '../help/verbs.ts';
import { FEATURE_HOOK, warnOfUnknownHooks } from './hooks.ts';

/** Runs before oclif loads a command, in our own program and in hosts. It must not load the rules of keys. */
const hook: Hook<'init'> = async ({ config, id, argv }) => {
  const words = [id ?? '', ...argv];
  warnOfUnknownHooks(config);
  if (config.name !== 'svc-api') {
    const { 'svc-api': settings } = config.pjson as { 'svc-api'?: unknown };
    if (settings !== undefined) await (await import('./chosen-features.ts')).chooseForHost(config, settings, words);
    describeInHost(config);
  }
  if (!config.getPluginsList().some(({ hooks }) => hooks[FEATURE_HOOK])) return;
  const { addFeaturesOfPlugins } = await import('./features-of-plugins.ts');
  await addFeaturesOfPlugins(config, words);
};
export default hook;

/** Describes topics, and verbs in their groups, for the oclif of a host. */
function describeInHost(config: Config): void {
  const commands = config.commands.filter(({ pluginName }) => pluginName === 'svc-api');
  for (const { name, description } of topicsOf(commands)) Object.assign(config.findTopic(name) ?? {}, { description });
  const apikey = config.findCommand('apikey');
  if (apikey?.pluginName === 'svc-api')
    apikey.description = `${apikey.description ?? ''}\n\n${verbLines(config.commands)}`;
}
