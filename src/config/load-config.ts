import {
  aFunction,
  anyText,
  anything,
  checkOptions,
  type DocumentIssue,
  isRecord,
  KeysError,
  printable,
} from '../keys/basics/index.ts';
import { createCatalog, HOST_RESOURCES, type HostResource } from '../keys/permissions/index.ts';
import { describeIssues, locatedText, readYaml } from '../yaml/read-yaml.ts';
import { type ConfigFile, configLocation, readConfigFile } from './config-file.ts';
import { type Config, DEFAULT_CONFIG } from './config.ts';
import { ConfigReader } from './config-reader.ts';
import { readFederation } from './read-federation.ts';
import { readPeople } from './read-people.ts';
import { readLimits, readPolicySection, readResources, readRoles, readRoutes } from './read-access.ts';
import { readUpstreams } from './read-upstreams.ts';
import {
  readAudit,
  readClients,
  readConsent,
  readCors,
  readCredentials,
  readFeed,
  readIntrospection,
  readNotices,
  readPublicUrl,
  readServer,
  readSignIn,
  readTls,
  readTrust,
} from './read-server.ts';

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
 * @throws KeysError CONFIG_INVALID with the line and column of each error; CONFIG_INSECURE if other users may have
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

/** The fields of the file; `$schema` names its JSON Schema for editors. */
export const CONFIG_FIELDS = [
  '$schema',
  'resources',
  'roles',
  'credentials',
  'trust',
  'upstreams',
  'routes',
  'expect',
  'cors',
  'tls',
  'server',
  'limits',
  'policy',
  'people',
  'federation',
  'audit',
  'notices',
  'introspection',
  'publicUrl',
  'consent',
  'clients',
  'sign-in',
  'feed',
] as const;

interface ConfigContext {
  /** The absolute path of the file. */
  file: string;
  /** The host's own resources, which roles and routes may name, too. */
  resources: readonly HostResource[];
  /** Is told what is expected of the routes and is not so, which otherwise is wrong with the file. */
  onUnmet?: ((issues: readonly DocumentIssue[]) => void) | undefined;
}

/** Reads a parsed file. An empty one says nothing. @returns the configuration, or all that is wrong with the file */
export function readConfig(
  value: unknown,
  { file, resources: ofHost, onUnmet }: ConfigContext,
): { config: Config } | { issues: readonly DocumentIssue[] } {
  const reader = new ConfigReader(file);
  const given = value ?? {};
  if (!isRecord(given)) {
    reader.report([], 'The configuration must be a map of fields, such as "resources: [WIKI]".');
    return { issues: reader.issues };
  }
  const fields = reader.knownFields(given, [], CONFIG_FIELDS);
  reader.optionalText(fields.$schema, ['$schema']);
  const resources = readResources(reader, fields.resources);
  const catalog = createCatalog({ resources: [...ofHost, ...resources], declaredIn: 'this file' });
  const roles = readRoles(reader, fields.roles, catalog);
  const upstreams = readUpstreams(reader, fields.upstreams);
  const { unmet, ...declared } = readRoutes(reader, fields, catalog);
  if (!onUnmet) reader.issues.push(...unmet);
  else if (unmet.length > 0) onUnmet(unmet);
  const withRoles = createCatalog({ resources: catalog.resources, roles, declaredIn: 'this file' });
  const publicUrl = readPublicUrl(reader, fields.publicUrl);
  const config: Config = {
    file,
    resources,
    roles,
    credentials: readCredentials(reader, fields.credentials),
    trust: readTrust(reader, fields.trust),
    upstreams,
    routes: declared.routes,
    expect: declared.expect,
    cors: readCors(reader, fields.cors),
    tls: readTls(reader, fields.tls),
    server: readServer(reader, fields.server),
    limits: readLimits(reader, fields.limits),
    policy: readPolicySection(reader, fields.policy, withRoles),
    people: readPeople(reader, fields, withRoles),
    federation: readFederation(reader, fields.federation, { catalog: withRoles, publicUrl }),
    audit: readAudit(reader, fields.audit),
    notices: readNotices(reader, fields.notices),
    introspection: readIntrospection(reader, fields.introspection),
    publicUrl,
    consent: readConsent(reader, fields.consent),
    ...readClients(reader, fields.clients, fields.consent),
    signIn: readSignIn(reader, fields['sign-in']),
    feed: readFeed(reader, fields.feed),
  };
  return reader.issues.length > 0 ? { issues: reader.ownIssues } : { config };
}
