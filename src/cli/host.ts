import type { Config } from '@oclif/core/interfaces';
import type { Resolvers, SchemaExtension } from '../graphql/extension.ts';
import type { HostResource } from '../keys/permissions/catalog.ts';
import { KeysError } from '../keys/errors.ts';
import { debug, millisecondsSince } from '../keys/steps.ts';
import { printable } from '../keys/text.ts';
import { readExtension } from './extension.ts';

/** How long a hook may take, and the resolvers that it returns may take to load, in milliseconds. */
const LIMIT_MS = 10_000;

/** The hook of ours that a host may have. */
const HOOK = 'svc-api:schema';

/**
 * Collects the schema extensions of the host CLI and its plugins, by the oclif hook `svc-api:schema`.
 * @throws KeysError SCHEMA_INVALID, naming the plugin whose hook fails, takes too long, returns something else, or has
 *   a name of ours that there is not: oclif would never call it
 */
export async function hostExtensions(config: Config): Promise<SchemaExtension[]> {
  for (const { name, hooks } of config.getPluginsList())
    for (const hook of Object.keys(hooks))
      if (hook.startsWith('svc-api:') && hook !== HOOK)
        throw new KeysError(
          'SCHEMA_INVALID',
          `The package.json of ${name} has the hook "${printable(hook)}", which there is not. Did you mean "${HOOK}"?`,
        );
  // oclif's own timer lets the process end before it: a hook that waits for nothing would end it without a word.
  const began = performance.now();
  const awake = setTimeout(() => {}, LIMIT_MS + 1000);
  // All failures are captured: oclif would rethrow those with an exit code, without naming the plugin.
  const { successes, failures } = await config.runHook(HOOK, {}, LIMIT_MS, true).finally(() => clearTimeout(awake));
  debug('the hooks of the host were asked', () => ({
    hook: HOOK,
    answered: successes.map(({ plugin, result }) => ({ plugin: plugin.name, added: Object.keys(result ?? {}) })),
    failed: failures.map(({ plugin }) => plugin.name),
    durationMs: millisecondsSince(began),
  }));
  const [failed] = failures;
  if (failed) throw hookFailed(failed.plugin.name, failed.error);
  return successes
    .filter(({ result }) => result != null)
    .map(({ plugin: { name }, result }) => {
      try {
        const extension = readExtension(result);
        return { ...extension, name, ...loadedInTime(name, extension) };
      } catch (error) {
        throw hookFailed(name, error);
      }
    });
}

/** The host's own resources. Its resolvers are not loaded. */
export async function hostResources(config: Config): Promise<HostResource[]> {
  return (await hostExtensions(config)).flatMap(({ resources }) => resources ?? []);
}

/** The resolvers of a hook's part: where they are a function, loading them has a time limit. */
function loadedInTime(plugin: string, { resolvers }: SchemaExtension): Pick<SchemaExtension, 'resolvers'> {
  if (typeof resolvers !== 'function') return {};
  return {
    resolvers: async () => {
      let timer: NodeJS.Timeout | undefined;
      const tooLate = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`"resolvers" ${TOO_SLOW}`)), LIMIT_MS);
      });
      try {
        return await Promise.race<Resolvers>([Promise.resolve().then(resolvers), tooLate]);
      } catch (error) {
        throw hookFailed(plugin, error);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

const TOO_SLOW = `has not returned within ${LIMIT_MS / 1000} seconds.`;

function hookFailed(plugin: string, cause: unknown): KeysError {
  const message = cause instanceof Error ? cause.message : String(cause);
  const reason = message === `Timed out after ${LIMIT_MS} ms.` ? `it ${TOO_SLOW}` : message;
  return new KeysError('SCHEMA_INVALID', `The hook ${HOOK} of ${plugin} failed: ${reason}`, { cause });
}
