import { isAbsolute, join } from 'node:path';
import type { Config, Hook, Hooks } from '@oclif/core/interfaces';
import type { Resolvers, SchemaExtension } from '../graphql/index.ts';
import type { OpenKeys } from '../service/library-keys.ts';
import { debug, isRecord, KeysError, kindOf, printable } from '../keys/basics/index.ts';
import { requireFeatures } from '../keys/added/index.ts';
import {
  type CatalogAdditions,
  createCatalog,
  HOST_ACTIONS,
  HOST_RESOURCES,
  type OwnNames,
  parsePermissions,
  type Vocabulary,
  vocabularyOf,
} from '../keys/permissions/index.ts';
import { hookFailed, LIMIT_MS, resultsOf, SCHEMA_HOOK, TOO_SLOW } from './plugins/hooks.ts';

/** The fields of a host's part: a description of allowed values, and a check. */
const FIELDS: Readonly<Record<string, readonly [allowed: string, isRight: (value: unknown) => boolean]>> = {
  resources: [
    'a list of names, or of { name, credentials? }',
    (value) => HOST_RESOURCES(value, 'resources') === undefined,
  ],
  actions: ['a list of names, each once', (value) => HOST_ACTIONS(value, 'actions') === undefined],
  typeDefs: ['SDL, a parsed document, or a list of them', (value) => [value].flat().every(isTypeDefs)],
  resolvers: [
    'an object, by type and field, or a function that returns it',
    (value) => isRecord(value) || typeof value === 'function',
  ],
};
const ALLOWED = `It can return { ${Object.keys(FIELDS).join(', ')} }, each of which is optional.`;

/**
 * Validates the result of a hook `svc-api:schema`, which is code of others.
 * @throws Error that names the field, its kind of value, and the allowed ones
 */
function readExtension(result: unknown): SchemaExtension {
  if (!isRecord(result)) throw new Error(`It returned ${kindOf(result)}. ${ALLOWED}`);
  for (const [field, value] of Object.entries(result)) {
    const [allowed, isRight] = (Object.hasOwn(FIELDS, field) && FIELDS[field]) || [];
    if (!isRight) throw new Error(`It returned "${printable(field)}", which is not a field. ${ALLOWED}`);
    if (value !== undefined && !isRight(value))
      throw new Error(`Its field "${field}" is ${kindOf(value)}; it must be ${allowed}.`);
  }
  const { resources, actions, typeDefs, resolvers } = result as SchemaExtension;
  createCatalog(vocabularyOf({ ...(resources && { resources }), ...(actions && { actions }) }));
  return {
    ...(resources && { resources }),
    ...(actions && { actions }),
    ...(typeDefs && { typeDefs }),
    ...(resolvers && { resolvers }),
  };
}

function isTypeDefs(value: unknown): boolean {
  return typeof value === 'string' || (isRecord(value) && value['kind'] === 'Document');
}

/**
 * Collects the schema extensions of the host CLI and its plugins, through the oclif hook `svc-api:schema`.
 * @throws KeysError SCHEMA_INVALID, which names the plugin whose hook fails, takes too long or returns something else
 */
export async function hostExtensions(config: Config): Promise<SchemaExtension[]> {
  return (await resultsOf(config, SCHEMA_HOOK)).map(({ plugin: name, result }) => {
    try {
      const extension = readExtension(result);
      return { ...extension, name, ...loadedInTime(name, extension) };
    } catch (error) {
      throw hookFailed(SCHEMA_HOOK, name, error);
    }
  });
}

/** The host's own resources and actions. Its resolvers are not loaded. */
export async function hostVocabulary(config: Config): Promise<OwnNames & Required<Vocabulary>> {
  return vocabularyOf(...(await hostExtensions(config)), { prefix: hostPrefix(config) });
}

/** The start of secrets that a host's package.json names. Its form was checked when the features were chosen. */
export function hostPrefix({ pjson }: Pick<Config, 'pjson'>): string | undefined {
  const { prefix } = ((pjson as { 'svc-api'?: unknown })['svc-api'] ?? {}) as { prefix?: unknown };
  return typeof prefix === 'string' ? prefix : undefined;
}

/** The resolvers of a hook's part, with a time limit if a function loads them. */
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
        throw hookFailed(SCHEMA_HOOK, plugin, error);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/**
 * The hooks that svc-api calls, for oclif's type `Hook`.
 * @example
 * const hook: Hook<'svc-api:schema', Interfaces.Hooks & SvcApiHooks> = async () => ({ resources: ['BACKUP'] });
 */
export interface SvcApiHooks {
  /** Returns the host's part of the schema. `apikey` uses its resources, and `serve` all of it. */
  'svc-api:schema': { options: Record<string, unknown>; return: Omit<SchemaExtension, 'name'> | undefined };
}

/**
 * The oclif hook `svc-api:schema`.
 * @example
 * const hook: SchemaHook = async () => ({ resources: ['BACKUP'] });
 * export default hook;
 */
export type SchemaHook = Hook<'svc-api:schema', Hooks & SvcApiHooks>;

/**
 * The key store that a host CLI has chosen for its users, by `"oclif": { "svc-api": { "database": … } }` in its
 * package.json: a path in its data folder, an absolute path, or a postgres:// URL.
 * @returns an absolute path or a URL; undefined if the host has chosen none
 * @throws KeysError HOST_INVALID, which names the host and the setting
 */
export function hostDatabase({ pjson, dataDir, name }: Pick<Config, 'pjson' | 'dataDir' | 'name'>): string | undefined {
  const settings = (pjson.oclif as Record<string, unknown>)['svc-api'];
  if (settings === undefined) return undefined;
  const invalid = (setting: string, problem: string) =>
    new KeysError('HOST_INVALID', `In the package.json of ${name}, oclif["svc-api"]${setting} ${problem}`);
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings))
    throw invalid('', 'must be an object, such as { "database": "keys.sqlite" }.');
  const { database, ...others } = settings as Record<string, unknown>;
  const [unknown] = Object.keys(others);
  if (unknown === 'features')
    throw invalid(
      '.features',
      'is in the wrong place. Move it to "svc-api" at the top level of package.json, beside "oclif".',
    );
  if (unknown !== undefined) throw invalid(`["${unknown}"]`, 'is not a setting. The only one is "database".');
  if (database === undefined) return undefined;
  // A store in memory would be lost at the end of each command.
  if (typeof database !== 'string' || ['', ':memory:'].includes(database.trim()) || database.includes('\0'))
    throw invalid('.database', "must be a path in the CLI's data folder, an absolute path, or a postgres:// URL.");
  if (isAbsolute(database) || /^[a-z][a-z0-9+.-]+:\/\//i.test(database)) return database;
  if (isAbsolute(dataDir)) return join(dataDir, database);
  throw new KeysError(
    'USAGE',
    `The location of the key store is not known: the data folder of ${name} is "${dataDir}", which is relative. ` +
      'Set XDG_DATA_HOME to an absolute path, or pass --database <path>.',
  );
}

/**
 * Opens the key store that the commands of a CLI use: the one named by SVC_API_DATABASE, the host's own, or the user's,
 * with all additions of the host and svc-api.yaml.
 * @param config oclif's configuration of the CLI, `this.config` in commands
 * @throws KeysError STORE_…, CONFIG_…, SCHEMA_INVALID, HOST_INVALID; STORE_REQUIRED if SVC_API_SERVER names a server,
 * whose keys are not in a store of this machine
 */
export async function keysOf(config: Config): Promise<OpenKeys> {
  requireFeatures();
  const { env } = process;
  const { requireStore } = await import('./with-keys.ts');
  requireStore({}, env);
  const database = env['SVC_API_DATABASE'] ? undefined : hostDatabase(config);
  const { openKeys } = await import('../service/library-keys.ts');
  const options = { database, ...(await additionsOf({ config, file: undefined, env })) };
  // The library refuses undefined options.
  return openKeys(Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)));
}

/**
 * True if a command of the host runs one of ours by `config.runCommand`: then the process arguments name the host's
 * command. oclif does not tell a command who runs it.
 * @param id of our command
 */
export async function isRunByAnother(config: Config, id: string): Promise<boolean> {
  const own = config.findCommand(id)?.pluginName;
  if (own === config.name) return false;
  if (config.isSingleCommandCLI) return true;
  const { typedCommand } = await import('./typed-command.ts');
  const typed = typedCommand(config);
  return typed !== undefined && typed.pluginName !== own;
}

/** Options of `additionsOf`. */
interface AdditionsOptions {
  /** The CLI that runs, which may be a host with svc-api as a plugin. */
  config: Config;
  /** The path of the configuration that the user named. */
  file: string | undefined;
  /** Default: the environment of the process. */
  env?: NodeJS.ProcessEnv;
  /**
   * All permissions involved, as written. If all are built in, and there is no file, the host's hooks are not called.
   */
  permissions?: readonly string[] | undefined;
}

/**
 * The additions of the host and svc-api.yaml to the catalog, and the policy for keys.
 * @throws KeysError CONFIG_…, SCHEMA_INVALID, USAGE
 */
export async function additionsOf({
  config,
  file,
  env = process.env,
  permissions,
}: AdditionsOptions): Promise<CatalogAdditions> {
  // The list of features has some of the built-in resources.
  const [{ configLocation, readConfigFile }, { additionsOfFeatures }] = await Promise.all([
    import('../config/config-file.ts'),
    import('../features/index.ts'),
  ]);
  const location = configLocation(file, env);
  const found = location && readConfigFile(location);
  const declaredIn = location?.path;
  if (!found) {
    const needsHost = !permissions || !areBuiltIn(permissions);
    if (!needsHost) debug('the hooks of the host were not asked', () => ({ reason: 'all grants are built in' }));
    return { ...(needsHost ? await hostVocabulary(config) : { prefix: hostPrefix(config) }), declaredIn };
  }
  const ofHost = await hostVocabulary(config);
  const { parseConfig } = await import('../config/load-config.ts');
  const read = await parseConfig(found, ofHost);
  const { builtinResources, roles, policy, added } = read;
  const ofFeatures = additionsOfFeatures(read);
  return { ...vocabularyOf(ofHost, read), builtinResources, roles, policy, added, declaredIn, ...ofFeatures };
}

function areBuiltIn(permissions: readonly string[]): boolean {
  return parsePermissions(permissions, createCatalog()).issues.length === 0;
}
