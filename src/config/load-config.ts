import type { DocumentIssue } from '../keys/document.ts';
import { KeysError } from '../keys/errors.ts';
import { aFunction, anyText, anything, checkOptions } from '../keys/options.ts';
import { HOST_RESOURCES, type HostResource } from '../keys/permissions/catalog.ts';
import { printable } from '../keys/text.ts';
import { describeIssues, locatedText } from '../yaml/located-issues.ts';
import { readYaml } from '../yaml/read-yaml.ts';
import { type Config, DEFAULT_CONFIG } from './config.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { configLocation } from './location.ts';
import { readConfig } from './read-config.ts';

/** Which configuration to load. */
export interface LoadConfigOptions {
  /** A path. Default: `SVC_API_CONFIG`, or `svc-api/svc-api.yaml` in the user's folder of configuration. */
  file?: string;
  /** Default: the environment of the process. */
  env?: NodeJS.ProcessEnv;
  /** Resources beside those of the file, which its roles and routes may name, too. */
  resources?: readonly HostResource[];
  /** Is told what is expected of routes and is not so, by lines and columns. Default: such a file is not loaded. */
  onUnmet?: (text: string) => void;
}

/**
 * Loads the configuration. Where no file is named, and there is none in its default place, that is the default one.
 * @throws KeysError CONFIG_INVALID with the line and column of each fault; CONFIG_INSECURE if other users may have
 * written the file; CONFIG_UNAVAILABLE if it cannot be read; OPTION_INVALID, USAGE
 * @example
 * const config = await loadConfig();
 * const { resources, roles, limits, policy, consent } = config;
 * const keys = await openKeys({ resources, roles, defaultLimits: limits.default, policy, consent });
 * const app = await createApp({ keys, config });
 */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<Config> {
  checkOptions<LoadConfigOptions>('loadConfig', options, {
    file: anyText,
    env: anything,
    resources: HOST_RESOURCES,
    onUnmet: aFunction(),
  });
  const { file, env = process.env, resources, onUnmet } = options;
  const location = configLocation(file, env);
  return parseConfig(location && readConfigFile(location), resources, onUnmet);
}

/** The configuration in a file that was read, the default one without a file. @throws KeysError CONFIG_INVALID */
export async function parseConfig(
  file: ConfigFile | undefined,
  resources: readonly HostResource[] = [],
  onUnmet?: (text: string) => void,
): Promise<Config> {
  if (!file) return DEFAULT_CONFIG;
  const { path, text } = file;
  const name = printable(path, 200);
  const document = await readYaml(text);
  if ('issues' in document) throw new KeysError('CONFIG_INVALID', locatedText(name, document.issues));
  const noteUnmet =
    onUnmet && ((issues: readonly DocumentIssue[]) => onUnmet(describeIssues(name, issues, document.positionOf)));
  const read = readConfig(document.value, { file: path, resources, onUnmet: noteUnmet });
  if ('config' in read) {
    const lineOf = (index: number) => document.positionOf({ path: ['routes', index] }).line;
    return { ...read.config, routes: read.config.routes.map((route, index) => ({ ...route, line: lineOf(index) })) };
  }
  throw new KeysError('CONFIG_INVALID', describeIssues(name, read.issues, document.positionOf));
}
