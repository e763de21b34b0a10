import {
  formatList,
  type Limit,
  list,
  options,
  parseRates,
  printable,
  required,
  type Rule,
  text,
  textOr,
  yesOrNo,
} from '../basics/index.ts';
import { DEFAULT_PREFIX, invalidPrefix, knowPrefix } from '../secret/index.ts';
import { MAX_NAMED, type Policy, type PolicyRules, readPolicy } from './policy.ts';

/** The built-in resources. An installation adds its own. */
export const RESOURCES = [
  'ACTIVATION_CODE',
  'API_KEY',
  'ARRAY',
  'CLOUD',
  'CONFIG',
  'CONNECT',
  'CONNECT__REMOTE_ACCESS',
  'CUSTOMIZATIONS',
  'DASHBOARD',
  'DISK',
  'DISPLAY',
  'DOCKER',
  'FLASH',
  'INFO',
  'LOGS',
  'ME',
  'NETWORK',
  'NOTIFICATIONS',
  'ONLINE',
  'OS',
  'OWNER',
  'PERMISSION',
  'REGISTRATION',
  'SERVERS',
  'SERVICES',
  'SHARE',
  'VARS',
  'VMS',
  'WELCOME',
] as const;

/** Built-in resources that hold credentials, which VIEWER cannot read. */
const CREDENTIAL_RESOURCES: ReadonlySet<string> = new Set(['API_KEY', 'ACTIVATION_CODE']);

/** The built-in roles. An installation adds its own. */
export const ROLES = ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST'] as const;

/** The role that includes everything, in every installation. */
export const ALL_ACCESS = 'ADMIN';

/** The purpose of each built-in role, shown to users. */
export const ROLE_MEANINGS: Readonly<Record<(typeof ROLES)[number], string>> = {
  ADMIN: 'Full system access: every action on every resource.',
  CONNECT: 'Access to the cloud-connection features, and all of GUEST.',
  VIEWER: 'Read-only access to every resource except those that hold credentials, and all of GUEST.',
  GUEST: 'Limited access: its own key, and the online status of the service.',
};

/** Actions on any object of a resource, or only on the caller's own. `X_ANY` includes `X_OWN`. */
export const ACTIONS = [
  'CREATE_ANY',
  'CREATE_OWN',
  'READ_ANY',
  'READ_OWN',
  'UPDATE_ANY',
  'UPDATE_OWN',
  'DELETE_ANY',
  'DELETE_OWN',
] as const;

/** The actions of an installation that a program declares for TypeScript. `svc-api` exports it. */
// oxlint-disable-next-line typescript/no-empty-object-type
export interface OwnActions {}

/** One of `ACTIONS`, or an action of the installation. */
// oxlint-disable-next-line typescript/no-redundant-type-constituents
export type Action = (typeof ACTIONS)[number] | keyof OwnActions;

const BY_METHOD: ReadonlyMap<string | undefined, Action> = new Map([
  ['GET', 'READ_ANY'],
  ['HEAD', 'READ_ANY'],
  ['OPTIONS', 'READ_ANY'],
  ['POST', 'CREATE_ANY'],
  ['PUT', 'UPDATE_ANY'],
  ['PATCH', 'UPDATE_ANY'],
  ['DELETE', 'DELETE_ANY'],
]);

/** The action for an HTTP method, if there is one. An upgrade begins with GET. */
export function actionByMethod(method: string | undefined): Action | undefined {
  return BY_METHOD.get(method);
}

/** The name of a role: a built-in one, or one of the installation's own. */
export type Role = string;

/** `RESOURCE:ACTION`, as written on the command line and stored. */
export type Permission = `${string}:${Action}`;

/** The name of a role, or a permission. */
export type Grant = string;

/** Everything that can be granted in one installation. */
export interface Catalog {
  /** The built-in resources and the installation's own. */
  readonly resources: readonly string[];
  /**
   * The resources offered for choice: the installation's own first, then the built-in ones unless they are hidden and
   * there are others.
   */
  readonly offered: readonly string[];
  /** The start of new secrets. */
  readonly prefix: string;
  /** The built-in actions, then the installation's own. */
  readonly actions: readonly Action[];
  /** The built-in roles and the installation's own. */
  readonly roles: readonly Role[];
  /** The limits of keys that have none of their own. */
  readonly defaultLimits: readonly Limit[];
  /** The installation's demands on all keys. */
  readonly policy: Policy;
  /** The file that declares the installation's own resources, for messages; undefined to leave it out. */
  readonly declaredIn?: string | undefined;
  /** Values of sections of plugins, by their names. */
  readonly added: Readonly<Record<string, unknown>>;
  /** The purpose of a role, in a sentence. */
  meaningOf(role: Role): string;
  /** The permissions that a role includes; none if it is unknown. */
  permissionsOf(role: Role): readonly Permission[];
  /** True if a role includes another one. ADMIN includes all roles, even unknown ones. */
  includes(role: Role, other: Role): boolean;
  /** True if a role or permission can be granted here. Keys keep grants that cannot. */
  knows(grant: Grant): boolean;
}

/** Visibilities of the built-in resources in pickers and lists. */
export const BUILTIN_RESOURCES = ['shown', 'hidden'] as const;

/** A resource of the installation: its name, or also whether it holds credentials, which excludes it from VIEWER. */
export type HostResource = string | { readonly name: string; readonly credentials?: boolean };

const ofFeatures: HostResource[] = [];
const ofPlugins: Exclude<HostResource, string>[] = [];
const actionsOfPlugins: string[] = [];

/** Adds resources of svc-api's features to each catalog created after this: they count as built-in ones. */
export function addBuiltInResources(resources: readonly HostResource[]): void {
  ofFeatures.push(...resources);
}

/** Adds resources and actions of plugins to each catalog created after this. */
export function addVocabulary(resources: readonly Exclude<HostResource, string>[], actions: readonly string[]): void {
  ofPlugins.push(...resources);
  actionsOfPlugins.push(...actions);
}

/** The problem with a resource of a plugin; undefined if there is none. @param others added at the same time */
export function problemOfAddedResource(
  resource: Exclude<HostResource, string>,
  others: readonly string[],
): string | undefined {
  const { name } = resource;
  if ([...RESOURCES, ...ofPlugins.map((each) => each.name), ...others].includes(name))
    return `Its resource "${printable(name)}" exists already. Give it another name.`;
  return invalidResource(resource);
}

/** The rule for a list of resources. `createCatalog` checks the names. */
export const HOST_RESOURCES: Rule<readonly HostResource[]> = list(
  textOr(options<Exclude<HostResource, string>>({ name: required(text), credentials: yesOrNo })),
);

/** The most actions that a file, a host or a plugin adds: each can be granted on each resource. */
export const MAX_ACTIONS = 32;

/** The rule for a list of actions, each once. `createCatalog` checks the names. */
export const HOST_ACTIONS: Rule<readonly string[]> = (value, path) => {
  const problem = list(text)(value, path);
  if (problem !== undefined) return problem;
  const names = value as readonly string[];
  if (names.length > MAX_ACTIONS) return `has ${names.length} actions. Declare at most ${MAX_ACTIONS}.`;
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  return repeated === undefined ? undefined : `has "${printable(repeated)}" twice.`;
};

/** Resources and actions that an installation, a host or a plugin adds. */
export interface Vocabulary {
  /** Resources that keys can be granted actions on. Names have capital letters, digits and underscores, at most 64. */
  readonly resources?: readonly HostResource[];
  /** Actions in addition to the built-in ones, such as `PUBLISH`. Names as those of resources. `X_ANY` brings `X_OWN`. */
  readonly actions?: readonly string[];
}

/** Names that an installation or a host declares. */
export interface OwnNames extends Vocabulary {
  /** The start of new secrets in place of `svc`: 2 to 12 letters and digits. */
  readonly prefix?: string | undefined;
}

/** The resources and actions of several parts, and the last prefix. */
export function vocabularyOf(...parts: readonly OwnNames[]): OwnNames & Required<Vocabulary> {
  return {
    resources: parts.flatMap(({ resources = [] }) => resources),
    actions: parts.flatMap(({ actions = [] }) => actions),
    prefix: parts.findLast(({ prefix }) => prefix !== undefined)?.prefix,
  };
}

/**
 * An installation's own resources, actions and roles, its limits and policy for keys, and what features add to a
 * catalog.
 */
export interface CatalogAdditions extends OwnNames {
  /** Hidden built-in resources keep working, but are not offered for choice. Default: shown. */
  builtinResources?: (typeof BUILTIN_RESOURCES)[number];
  /** The permissions of each role. Names follow the rule for resources. */
  roles?: Readonly<Record<string, readonly Permission[]>>;
  /** The limits of keys that have none of their own, such as `100/m`. Default: none. */
  defaultLimits?: readonly string[];
  /** The installation's demands on all keys. Default: none. */
  policy?: PolicyRules;
  /** The place that declares resources and actions, for messages about unknown ones. `openKeys` names its options. */
  declaredIn?: string;
  /** Values of sections of plugins, by their names, for their operations. Default: none. */
  added?: Readonly<Record<string, unknown>>;
}

export const NAME = /^[A-Z][A-Z0-9_]{0,63}$/;
const NAME_RULE = 'use capital letters, digits and underscores, at most 64';
const GUEST: readonly Permission[] = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];
const NONE: readonly Permission[] = [];

/**
 * Creates the catalog of an installation.
 * @throws Error if a name, limit or policy rule is invalid, a built-in resource or role would change, or a role or the
 * policy has an unknown permission
 */
export function createCatalog({
  resources: declared = [],
  actions: declaredActions = [],
  prefix = DEFAULT_PREFIX,
  builtinResources = 'shown',
  roles = {},
  defaultLimits = [],
  policy: rules = {},
  declaredIn,
  added = {},
  ...others
}: CatalogAdditions = {}): Catalog {
  const own = [...ofFeatures, ...ofPlugins, ...declared].map((resource) =>
    typeof resource === 'string' ? { name: resource } : resource,
  );
  const resources = [...new Set<string>([...RESOURCES, ...own.map(({ name }) => name)])];
  const ownNames = own.slice(ofFeatures.length).map(({ name }) => name);
  const withCredentials = new Set(own.filter(({ credentials }) => credentials).map(({ name }) => name));
  const ownActions = [...actionsOfPlugins, ...declaredActions];
  const actions = [...new Set<string>([...ACTIONS, ...ownActions.flatMap(withOwn)])] as Action[];
  const permissions = new Map<Role, readonly Permission[]>([
    ['ADMIN', resources.flatMap((resource) => actions.map((action): Permission => `${resource}:${action}`))],
    ['CONNECT', [...['CLOUD', 'CONNECT', 'CONNECT__REMOTE_ACCESS'].flatMap(readAndUpdate), ...GUEST]],
    ['VIEWER', [...resources.filter((name) => isReadable(name, withCredentials)).map(read), ...GUEST]],
    ['GUEST', GUEST],
    ...Object.entries(roles),
  ]);
  const known: ReadonlySet<string> = new Set(permissions.get('ADMIN'));
  const limits = parseRates(defaultLimits);
  const { policy, issues } = readPolicy(rules);
  assertNone([
    ...own.map(invalidResource),
    ...ownActions.map(invalidAction),
    invalidPrefix(prefix),
    ...Object.keys(roles).map(invalidRole),
    ...limits.issues.map(({ message }) => message),
    ...issues.map(({ message }) => message),
    ...(policy.grantableByKeys ?? []).map((grant) =>
      known.has(grant) || permissions.has(grant)
        ? undefined
        : `"${printable(grant)}" is neither a role nor a permission.`,
    ),
    ...Object.values(roles).flatMap((granted) => granted.map((item) => (known.has(item) ? undefined : unknown(item)))),
  ]);
  knowPrefix(prefix);
  return {
    resources,
    prefix,
    offered: [
      ...new Set(
        builtinResources === 'hidden' && ownNames.length > 0 ? ownNames : [...ownNames, ...resources.toSorted()],
      ),
    ],
    actions,
    roles: [...permissions.keys()],
    defaultLimits: limits.values,
    policy,
    declaredIn,
    added,
    ...others,
    meaningOf: (role) => (ROLE_MEANINGS as Record<string, string>)[role] ?? meaningOf(permissions.get(role) ?? NONE),
    permissionsOf: (role) => permissions.get(role) ?? NONE,
    includes: includesRole,
    knows: (grant) => permissions.has(grant) || known.has(grant),
  };
}

/** A resource for examples: the first one of the installation, or one that any reader knows. */
export function exampleResource({ offered: [first] }: Pick<Catalog, 'offered'>): string {
  return first === undefined || first === RESOURCES[0] ? 'DASHBOARD' : first;
}

/** True if a role includes another one in every installation. */
function includesRole(role: Role, other: Role): boolean {
  return role === other || role === ALL_ACCESS || (other === 'GUEST' && (role === 'CONNECT' || role === 'VIEWER'));
}

/** The problem with a resource of an installation; undefined if there is none. */
export function invalidResource({ name, credentials }: Exclude<HostResource, string>): string | undefined {
  if (credentials !== undefined && (RESOURCES as readonly string[]).includes(name))
    return `"${name}" is a built-in resource: its "credentials" setting cannot be changed.`;
  return NAME.test(name) ? undefined : `"${printable(name)}" is not a resource name: ${NAME_RULE}.`;
}

/** The problem with an action of an installation; undefined if there is none. */
export function invalidAction(name: string): string | undefined {
  if ((ACTIONS as readonly string[]).includes(name)) return `"${name}" is a built-in action. Leave it out.`;
  if ((ACTIONS as readonly string[]).includes(`${name}_ANY`))
    return `"${name}" reads like ${name}_ANY and ${name}_OWN, which are built in. Choose another word.`;
  return NAME.test(name) ? undefined : `"${printable(name)}" is not the name of an action: ${NAME_RULE}.`;
}

/** An action, and the one that it includes. */
export function withOwn(action: string): string[] {
  return action.endsWith('_ANY') ? [action, action.replace(/_ANY$/, '_OWN')] : [action];
}

/** The problem with the name of an installation's role; undefined if there is none. */
export function invalidRole(name: string): string | undefined {
  if ((ROLES as readonly string[]).includes(name)) return `"${name}" is a built-in role, which cannot be changed.`;
  return NAME.test(name) ? undefined : `"${printable(name)}" is not a role name: ${NAME_RULE}.`;
}

function unknown(permission: string): string {
  return `"${printable(permission)}" is not a permission.`;
}

function assertNone(problems: readonly (string | undefined)[]): void {
  const problem = problems.find((each) => each !== undefined);
  if (problem !== undefined) throw new Error(problem);
}

function isReadable(resource: string, withCredentials: ReadonlySet<string>): boolean {
  return !CREDENTIAL_RESOURCES.has(resource) && !withCredentials.has(resource);
}

function read(resource: string): Permission {
  return `${resource}:READ_ANY`;
}

function readAndUpdate(resource: string): Permission[] {
  return [`${resource}:READ_ANY`, `${resource}:UPDATE_ANY`];
}

function meaningOf(permissions: readonly Permission[]): string {
  const named: string[] = permissions.slice(0, MAX_NAMED);
  if (permissions.length > MAX_NAMED) named.push(`${permissions.length - MAX_NAMED} more`);
  return `Allows ${formatList(named)}.`;
}
