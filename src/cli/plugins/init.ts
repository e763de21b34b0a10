import type { Hook } from '@oclif/core/interfaces';
import { FEATURE_HOOK, warnOfUnknownHooks } from './hooks.ts';

/** oclif runs it before it loads a command, in our own program and in those of hosts. It must load no rules of keys. */
const hook: Hook<'init'> = async ({ config, id, argv }) => {
  warnOfUnknownHooks(config);
  if (!config.getPluginsList().some(({ hooks }) => hooks[FEATURE_HOOK])) return;
  const { addFeaturesOfPlugins } = await import('./features-of-plugins.ts');
  await addFeaturesOfPlugins(config, [id ?? '', ...argv]);
};
export default hook;
