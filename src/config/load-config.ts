import {
  aFunction,
  anyText,
  anything,
  checkOptions,
  type DocumentIssue,
  KeysError,
  printable,
  text,
} from '../keys/basics/index.ts';
import { invalidPrefix } from '../keys/secret/index.ts';
import { HOST_ACTIONS, HOST_RESOURCES, type OwnNames } from '../keys/permissions/index.ts';
import { describeIssues, locatedText, readYaml } from '../yaml/read-yaml.ts';
import { type ConfigFile, configLocation, readConfigFile } from './config-file.ts';
import type { Config } from './config.ts';

/** Options of `loadConfig`. */
export interface LoadConfigOptions extends OwnNames {
  /** A path. Default: `SVC_API_CONFIG`, or `svc-api/svc-api.yaml` in the user's configuration folder. */
  file?: string;
  /** Default: the environment of the process. */
  env?: NodeJS.ProcessEnv;
  /** Called with failed route expectations, by line and column. By default they are errors. */
  onUnmet?: (text: string) => void;
}

/**
 * Loads the configuration. Without a named file, and none in the default location, it is the default configuration.
 * @throws KeysError CONFIG_INVALID with the line and column of each error; CONFIG_INSECURE if other users could have
 * written the file; CONFIG_UNAVAILABLE if it cannot be read; OPTION_INVALID, USAGE
 * @example
 * const config = await loadConfig();
 * const { resources, actions, roles, limits, policy, consent } = config;
 * const keys = await openKeys({ resources, actions, roles, defaultLimits: limits.default, policy, consent });
 * const app = await createApp({ keys, config });
 */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<Config> {
  checkOptions<LoadConfigOptions>('loadConfig', options, {
    file: anyText,
    env: anything,
    resources: HOST_RESOURCES,
    actions: HOST_ACTIONS,
    prefix: (value, name) => text(value, name) ?? invalidPrefix(value as string),
    onUnmet: aFunction(),
  });
  const { file, env = process.env, onUnmet, ...ofHost } = options;
  const location = configLocation(file, env);
  return parseConfig(location && readConfigFile(location), ofHost, onUnmet);
}

/** The configuration in a file that was read; the default one without a file. @throws KeysError CONFIG_INVALID */
export async function parseConfig(
  file: ConfigFile | undefined,
  ofHost: OwnNames = {},
  onUnmet?: (text: string) => void,
): Promise<Config> {
  // Loaded on use, so that programs that only import the library start faster.
  if (!file) return (await import('./default-config.ts')).defaultConfig();
  const { path, text } = file;
  const name = printable(path, 200);
  const document = await readYaml(text);
  if ('issues' in document) throw new KeysError('CONFIG_INVALID', locatedText(name, document.issues));
  const noteUnmet =
    onUnmet && ((issues: readonly DocumentIssue[]) => onUnmet(describeIssues(name, issues, document.positionOf)));
  // Loaded only for a file, so that commands without one start faster.
  const { readConfig } = await import('./read-config.ts');
  const lineOf = (of: readonly (string | number)[]) => document.positionOf({ path: [...of] }).line;
  const read = await readConfig(document.value, { file: path, ofHost, lineOf, onUnmet: noteUnmet });
  if ('config' in read) return read.config;
  throw new KeysError('CONFIG_INVALID', describeIssues(name, read.issues, document.positionOf));
}
