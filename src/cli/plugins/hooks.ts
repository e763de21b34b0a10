import type { Config } from '@oclif/core/interfaces';
import { debug, KeysError, millisecondsSince, printable } from '../../keys/basics/index.ts';

/** The hook for the host's part of the schema. */
export const SCHEMA_HOOK = 'svc-api:schema';
/** The hook for the feature of a plugin. */
export const FEATURE_HOOK = 'svc-api:feature';
const HOOKS: readonly string[] = [SCHEMA_HOOK, FEATURE_HOOK];

/** The error of each hook. */
const CODES = { [SCHEMA_HOOK]: 'SCHEMA_INVALID', [FEATURE_HOOK]: 'FEATURE_INVALID' } as const;
type OwnHook = keyof typeof CODES;

/** Words of a command line that show flags without running their command. */
export const ASKING = new Set(['--help', '-h', 'help', 'autocomplete', 'apikey:autocomplete', 'commands']);

/** The time limit of a hook, and of loading the resolvers that it returns, in milliseconds. */
export const LIMIT_MS = 10_000;
export const TOO_SLOW = `did not return within ${LIMIT_MS / 1000} seconds.`;

/** Warns about hooks of plugins that begin with `svc-api:` but are unknown, so that oclif never calls them. */
export function warnOfUnknownHooks(config: Config): void {
  for (const { name, hooks } of config.getPluginsList())
    for (const each of Object.keys(hooks))
      if (each.startsWith('svc-api:') && !HOOKS.includes(each))
        process.emitWarning(
          `The package.json of ${name} has the hook "${printable(each)}", which is never called: this version of ` +
            `svc-api knows only ${HOOKS.map((known) => `"${known}"`).join(' and ')}.`,
          'SvcApiUnknownHook',
        );
}

/**
 * Calls a hook of all plugins.
 * @returns the results by the names of the plugins, without undefined ones
 * @throws KeysError of the hook, which names the plugin whose hook fails or takes too long
 */
export async function resultsOf(config: Config, hook: OwnHook): Promise<{ plugin: string; result: unknown }[]> {
  // oclif's own timer does not keep the process alive: a hook that waits for nothing would end it silently.
  const began = performance.now();
  const awake = setTimeout(() => {}, LIMIT_MS + 1000);
  // All failures are captured: oclif would rethrow those with an exit code, without naming the plugin.
  const { successes, failures } = await config.runHook(hook, {}, LIMIT_MS, true).finally(() => clearTimeout(awake));
  debug('the hooks of the host were asked', () => ({
    hook,
    answered: successes.map(({ plugin, result }) => ({ plugin: plugin.name, added: Object.keys(result ?? {}) })),
    failed: failures.map(({ plugin }) => plugin.name),
    durationMs: millisecondsSince(began),
  }));
  const [failed] = failures;
  if (failed) {
    // Node says nothing of the place of an error of syntax.
    const files = (failed.plugin.hooks[hook] ?? []).map(({ target }) => target).join(', ');
    const place = failed.error instanceof SyntaxError ? ` (in ${printable(files)}, or a file that it imports)` : '';
    throw hookFailed(hook, failed.plugin.name, failed.error, place);
  }
  return successes.flatMap(({ plugin, result }) => (result == null ? [] : [{ plugin: plugin.name, result }]));
}

/** Reasons for failures of hooks, by the messages of oclif. */
const REASONS: Readonly<Record<string, string>> = {
  [`Timed out after ${LIMIT_MS} ms.`]: `it ${TOO_SLOW}`,
  'hookFn.call is not a function': 'its file does not export a function by default.',
};

/** The error of a hook that failed. */
export function hookFailed(hook: OwnHook, plugin: string, cause: unknown, place = ''): KeysError {
  const message = cause instanceof Error ? cause.message : String(cause);
  const reason = REASONS[message] ?? message;
  return new KeysError(CODES[hook], `The hook ${hook} of ${plugin} failed: ${reason}${place}`, { cause });
}
