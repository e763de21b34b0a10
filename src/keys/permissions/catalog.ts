import {
  durationHint,
  formatDuration,
  type Issue,
  type Limit,
  list,
  formatList,
  nearest,
  options,
  type OrRefusal,
  parseRates,
  printable,
  readDuration,
  required,
  type Rule,
  text,
  textOr,
  UNIT_MS,
  yesOrNo,
} from '../basics/index.ts';

/** What an installation demands of its keys, as it is written. What is left out demands nothing. */
export interface PolicyRules {
  /** How far ahead the expiry of a key may lie, such as `90d`. A key that never expires lives too long as well. */
  maxLifetime?: string;
  /** Whether every key must expire. */
  requireExpiry?: boolean;
  /** The roles and permissions that keys may grant, in capital letters. All others, only the operator grants. */
  grantableByKeys?: readonly string[];
  /** How many live keys a key may have created, from 1 to 1,000,000. */
  maxKeysPerCreator?: number;
  /** After how long without use a key is disabled, such as `60d`, at least a day. */
  disableUnused?: string;
}

export type PolicyRule = keyof PolicyRules;

/** The same as the rules go by it. Durations are in milliseconds; null demands nothing. */
export interface Policy {
  readonly maxLifetime: number | null;
  readonly requireExpiry: boolean;
  /** Names of roles, and permissions. */
  readonly grantableByKeys: readonly string[] | null;
  readonly maxKeysPerCreator: number | null;
  readonly disableUnused: number | null;
}

export const POLICY_RULES = [
  'maxLifetime',
  'requireExpiry',
  'grantableByKeys',
  'maxKeysPerCreator',
  'disableUnused',
] as const satisfies readonly PolicyRule[];

/** Demands nothing. */
export const NO_POLICY: Policy = {
  maxLifetime: null,
  requireExpiry: false,
  grantableByKeys: null,
  maxKeysPerCreator: null,
  disableUnused: null,
};

/** What `maxKeysPerCreator` can be at most. */
export const MAX_KEYS_PER_CREATOR = 1_000_000;
/** Ten years, as for the end of a key. */
const MAX_MS = 3653 * UNIT_MS.d;
/** Whether keys are used is looked at once an hour, and known some seconds late. */
const MIN_UNUSED_MS = UNIT_MS.d;

/** Reads rules. Whether there are such grants is not checked. */
export function readPolicy(rules: PolicyRules): { policy: Policy; issues: { rule: PolicyRule; message: string }[] } {
  const { requireExpiry = false, grantableByKeys = null, maxKeysPerCreator = null } = rules;
  const issues: { rule: PolicyRule; message: string }[] = [];
  const durationOf = (rule: 'maxLifetime' | 'disableUnused', least: number): number | null => {
    const text = rules[rule];
    const read = text === undefined ? null : readPeriod(text, least);
    if (typeof read !== 'string') return read;
    issues.push({ rule, message: read });
    return null;
  };
  const [maxLifetime, disableUnused] = [durationOf('maxLifetime', 0), durationOf('disableUnused', MIN_UNUSED_MS)];
  if (maxKeysPerCreator !== null && !isCount(maxKeysPerCreator)) {
    const message = `${maxKeysPerCreator} is not a whole number from 1 to ${MAX_KEYS_PER_CREATOR}.`;
    issues.push({ rule: 'maxKeysPerCreator', message });
  }
  return { policy: { maxLifetime, requireExpiry, grantableByKeys, maxKeysPerCreator, disableUnused }, issues };
}

/** A rule with its value, much as it is written: `maxLifetime: 90d`. */
export function ruleText(rule: PolicyRule, { [rule]: value }: Policy): string {
  if (typeof value === 'number') return `${rule}: ${rule === 'maxKeysPerCreator' ? value : formatDuration(value)}`;
  if (value === null || typeof value === 'boolean') return `${rule}: ${value}`;
  const named = value.slice(0, MAX_NAMED);
  const more = value.length - named.length;
  return `${rule}: ${formatList([...named, ...(more > 0 ? [`${more} more`] : [])]) || 'nothing'}`;
}

/** A duration in milliseconds, of so many at least and ten years at most, or what is wrong with the text. */
export function readPeriod(text: string, least: number): number | string {
  const duration = readDuration(text);
  const shown = `"${printable(text)}"`;
  if (duration === undefined) {
    const remedy = durationHint(text) ?? 'Write a number with s, m, h, d or w, such as 90d.';
    return `${shown} is not a duration. ${remedy}`;
  }
  if (duration > MAX_MS) return `${shown} is more than ten years. Choose a shorter time, or none.`;
  return duration < least ? `${shown} is too short. Choose ${formatDuration(least)} or more.` : duration;
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= MAX_KEYS_PER_CREATOR;
}

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

/** Built-in resources that hold credentials, which VIEWER may not read. */
const CREDENTIAL_RESOURCES: ReadonlySet<string> = new Set(['API_KEY', 'ACTIVATION_CODE']);

/** The built-in roles. An installation adds its own. */
export const ROLES = ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST'] as const;

/** The role that includes everything, whatever an installation declares. */
export const ALL_ACCESS = 'ADMIN';

/** What each built-in role is for, as shown to users. */
export const ROLE_MEANINGS: Readonly<Record<(typeof ROLES)[number], string>> = {
  ADMIN: 'Full system access: every action on every resource.',
  CONNECT: 'Access to the cloud-connection features, and all of GUEST.',
  VIEWER: 'Read-only access to every resource except those that hold credentials, and all of GUEST.',
  GUEST: 'Limited access: its own key, and whether the service is online.',
};

/** What may be done: to any object of a resource, or only to the caller's own. `X_ANY` includes `X_OWN`. */
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
/** One of `ACTIONS`. */
export type Action = (typeof ACTIONS)[number];

const BY_METHOD: ReadonlyMap<string | undefined, Action> = new Map([
  ['GET', 'READ_ANY'],
  ['HEAD', 'READ_ANY'],
  ['OPTIONS', 'READ_ANY'],
  ['POST', 'CREATE_ANY'],
  ['PUT', 'UPDATE_ANY'],
  ['PATCH', 'UPDATE_ANY'],
  ['DELETE', 'DELETE_ANY'],
]);

/** The action that a method of HTTP goes with, if there is one. An upgrade begins with GET. */
export function actionByMethod(method: string | undefined): Action | undefined {
  return BY_METHOD.get(method);
}

/** The name of a role: a built-in one, or one of the installation's own. */
export type Role = string;

/** `RESOURCE:ACTION`, as written on the command line and stored. */
export type Permission = `${string}:${Action}`;

/** The name of a role, or a permission. */
export type Grant = string;

/**
 * How applications may ask for keys: not at all, by a code that they show, by a page that they open, or both. Without
 * one, `svc-api login` alone may, by a code.
 */
export const CONSENT_MODES = ['off', 'device', 'code', 'both'] as const;
/** One of `CONSENT_MODES`. */
export type ConsentMode = (typeof CONSENT_MODES)[number];

/** Everything that can be granted in one installation. */
export interface Catalog {
  /** The built-in resources and the installation's own. */
  readonly resources: readonly string[];
  /** All actions. */
  readonly actions: readonly Action[];
  /** The built-in roles and the installation's own. */
  readonly roles: readonly Role[];
  /** The limits of keys that have none of their own. */
  readonly defaultLimits: readonly Limit[];
  /** What is demanded of all keys. */
  readonly policy: Policy;
  /** How applications may ask for keys; undefined where that is not said. */
  readonly consent?: ConsentMode | undefined;
  /** The file that declares the installation's own resources, if that is to be told. */
  readonly declaredIn?: string | undefined;
  /** What a role is for, in a sentence. */
  meaningOf(role: Role): string;
  /** The permissions that a role includes; none if it is unknown. */
  permissionsOf(role: Role): readonly Permission[];
  /** Whether who holds a role holds another one by it, too. ADMIN includes all roles, even unknown ones. */
  includes(role: Role, other: Role): boolean;
  /** Whether a role or permission can be granted here. One that cannot is kept by the keys that have it. */
  knows(grant: Grant): boolean;
}

/** A resource of the installation: its name, or also whether it holds credentials, which keeps it out of VIEWER. */
export type HostResource = string | { readonly name: string; readonly credentials?: boolean };

/** What servers need that answer without a store: READ_ANY on it lets them have the digests of all secrets. */
const EDGE = { name: 'EDGE', credentials: true } as const satisfies HostResource;

/** A list of such resources. Whether their names are right is said by `createCatalog`. */
export const HOST_RESOURCES: Rule<readonly HostResource[]> = list(
  textOr(options<Exclude<HostResource, string>>({ name: required(text), credentials: yesOrNo })),
);

/**
 * What an installation adds to the built-in resources and roles, how it limits keys, what it demands of them, and how
 * applications may ask for some.
 */
export interface CatalogAdditions {
  /** Names have capital letters, digits and underscores, at most 64. */
  resources?: readonly HostResource[];
  /** The permissions of each role. Names are as those of resources. */
  roles?: Readonly<Record<string, readonly Permission[]>>;
  /** The limits of keys that have none of their own, such as `100/m`. Default: none. */
  defaultLimits?: readonly string[];
  /** What is demanded of all keys. Default: nothing. */
  policy?: PolicyRules;
  /**
   * How applications may ask for keys: `off`, `device` (by a code that they show), `code` (by a page that they open) or
   * `both`. Default: `svc-api login` alone may, by a code.
   */
  consent?: ConsentMode | undefined;
  /** The file that declares resources, which messages about unknown ones name. Default: none is named. */
  declaredIn?: string;
}

export const NAME = /^[A-Z][A-Z0-9_]{0,63}$/;
const NAME_RULE = 'use capital letters, digits and underscores, at most 64';
const GUEST: readonly Permission[] = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];
const NONE: readonly Permission[] = [];
/** How many permissions of a role are named where it is described. */
const MAX_NAMED = 5;

/**
 * Creates the catalog of an installation.
 * @throws Error if a name, limit, rule of the policy or way of consent is invalid, a built-in resource or role would
 * change, or a role or the policy has an unknown permission
 */
export function createCatalog({
  resources: added = [],
  roles = {},
  defaultLimits = [],
  policy: rules = {},
  consent,
  declaredIn,
}: CatalogAdditions = {}): Catalog {
  const own = [EDGE, ...added].map((resource) => (typeof resource === 'string' ? { name: resource } : resource));
  const resources = [...new Set<string>([...RESOURCES, ...own.map(({ name }) => name)])];
  const withCredentials = new Set(own.filter(({ credentials }) => credentials).map(({ name }) => name));
  const permissions = new Map<Role, readonly Permission[]>([
    ['ADMIN', resources.flatMap((resource) => ACTIONS.map((action): Permission => `${resource}:${action}`))],
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
    ...Object.keys(roles).map(invalidRole),
    ...limits.issues.map(({ message }) => message),
    ...issues.map(({ message }) => message),
    consent === undefined || CONSENT_MODES.includes(consent)
      ? undefined
      : 'The option "consent" must be off, device, code or both.',
    ...(policy.grantableByKeys ?? []).map((grant) =>
      known.has(grant) || permissions.has(grant)
        ? undefined
        : `"${printable(grant)}" is neither a role nor a permission.`,
    ),
    ...Object.values(roles).flatMap((granted) => granted.map((item) => (known.has(item) ? undefined : unknown(item)))),
  ]);
  return {
    resources,
    actions: ACTIONS,
    roles: [...permissions.keys()],
    defaultLimits: limits.values,
    policy,
    consent,
    declaredIn,
    meaningOf: (role) => (ROLE_MEANINGS as Record<string, string>)[role] ?? meaningOf(permissions.get(role) ?? NONE),
    permissionsOf: (role) => permissions.get(role) ?? NONE,
    includes: includesRole,
    knows: (grant) => permissions.has(grant) || known.has(grant),
  };
}

/** Whether who holds a role holds another one by it, in any installation. */
function includesRole(role: Role, other: Role): boolean {
  return role === other || role === ALL_ACCESS || (other === 'GUEST' && (role === 'CONNECT' || role === 'VIEWER'));
}

/** The grants of a key that cannot be made here. They allow nothing, until they are declared again. */
export function unknownGrantsOf(
  { roles, permissions }: { roles: readonly Role[]; permissions: readonly Permission[] },
  catalog: Catalog,
): Grant[] {
  return [...roles, ...permissions].filter((grant) => !catalog.knows(grant));
}

/** What is wrong with a resource of an installation; undefined if nothing is. */
export function invalidResource({ name, credentials }: Exclude<HostResource, string>): string | undefined {
  if (credentials !== undefined && (RESOURCES as readonly string[]).includes(name))
    return `"${name}" is a built-in resource: whether it holds credentials cannot be changed.`;
  return NAME.test(name) ? undefined : `"${printable(name)}" is not a resource name: ${NAME_RULE}.`;
}

/** What is wrong with the name of an installation's role; undefined if nothing is. */
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

/** The result of parsing a list. */
interface Parsed<Value> {
  /** The valid items, without duplicates. */
  values: Value[];
  /** What is wrong with the others. */
  issues: Issue[];
}

/** Parses names of roles, case-insensitive. Duplicates are dropped; unknown and empty items are issues. */
export function parseRoles(items: readonly string[], catalog: Catalog): Parsed<Role> {
  return parseItems<Role>('role', items, (item) => {
    const role = item.toUpperCase();
    if (!role.includes(':') && catalog.knows(role)) return { value: role };
    return { explain };

    function explain(): string {
      const what = item === '' ? 'An item of the list of roles is empty.' : `"${printable(item)}" is not a role.`;
      return `${what} ${suggest('role', item, catalog.roles)}`;
    }
  });
}

/** Why a text is not a permission as a program must write it: exactly as it is named. Undefined if it is one. */
export function invalidPermission(text: string, catalog: Catalog): string | undefined {
  if (text.includes(':') && catalog.knows(text)) return undefined;
  const { values, issues } = parsePermissions([text], catalog);
  return issues[0]?.message ?? `"${text}" is not a permission. Did you mean ${values[0]}?`;
}

/** Parses permissions, `RESOURCE:ACTION`, case-insensitive. Duplicates are dropped; all else is an issue. */
export function parsePermissions(items: readonly string[], catalog: Catalog): Parsed<Permission> {
  return parseItems<Permission>('permission', items, (item) => {
    const written = item.toUpperCase();
    if (written.includes(':') && catalog.knows(written)) return { value: written as Permission };
    const [resourceText = '', actionText = '', ...rest] = item.split(':').map((part) => part.trim());
    const resource = match(resourceText, catalog.resources);
    const action = match(actionText, catalog.actions);
    if (resource && action && rest.length === 0) return { value: `${resource}:${action}` };
    return { explain };

    function explain(): string {
      if (item === '')
        return 'An item of the list of permissions is empty. Write each as RESOURCE:ACTION, such as DOCKER:READ_ANY.';
      const shown = `"${printable(item)}"`;
      if (item.includes('*')) return `${shown} is not a permission: there are no wildcards. ${insteadOf()}`;
      if (rest.length > 0 || !item.includes(':') || resourceText === '' || actionText === '') {
        const likelyResource = resource ?? nearest(resourceText, catalog.resources, 1)[0] ?? 'DOCKER';
        const likelyAction = action ?? nearest(actionText, catalog.actions, 1)[0] ?? 'READ_ANY';
        return `${shown} is not a permission. Write RESOURCE:ACTION, such as ${likelyResource}:${likelyAction}.`;
      }
      const parts = [];
      if (!resource) parts.push(noResource(resourceText, catalog));
      if (!action)
        parts.push(`"${printable(actionText)}" is not an action. ${suggest('action', actionText, catalog.actions)}`);
      return `${shown} is not a permission: ${parts.join(' ')}`;
    }

    /** What to write where a wildcard was meant. `X_ANY` includes `X_OWN`. */
    function insteadOf(): string {
      if (!resource) return 'List each permission, or grant a role: VIEWER reads, ADMIN includes all.';
      const start = actionText.toUpperCase().split('*')[0]!;
      const all = catalog.actions.filter((each) => each.endsWith('_ANY'));
      const meant = all.filter((each) => each.startsWith(start));
      return `List each one: ${(meant.length > 0 ? meant : all).map((each) => `${resource}:${each}`).join(',')}.`;
    }
  });
}

/** Parses the name of a resource, in whatever case. */
export function parseResource(text: string, catalog: Catalog): OrRefusal<{ readonly value: string }> {
  const value = match(text.trim(), catalog.resources);
  return value === undefined ? { refusal: noResource(text, catalog) } : { value };
}

function noResource(text: string, { resources, declaredIn }: Catalog): string {
  const declare =
    declaredIn === undefined
      ? ''
      : ` Resources of your own are declared under "resources" in ${printable(declaredIn, 200)}.`;
  return `"${printable(text)}" is not a resource. ${suggest('resource', text, resources)}${declare}`;
}

function parseItems<Value extends string>(
  what: 'role' | 'permission',
  items: readonly string[],
  read: (item: string) => { value: Value } | { explain: () => string },
): Parsed<Value> {
  const values = new Set<Value>();
  const issues = new Map<string, Issue>();
  for (const item of items) {
    const result = read(item.trim());
    if ('value' in result) values.add(result.value);
    else {
      // To look for the nearest words takes time: it is done once, where nothing else is wrong.
      const message = unseparated(item) ?? result.explain();
      issues.set(message, { code: what === 'role' ? 'ROLE_INVALID' : 'PERMISSION_INVALID', message });
    }
  }
  return { values: [...values], issues: [...issues.values()] };

  /** What is wrong with one that has several in it, such as `VIEWER GUEST`. */
  function unseparated(item: string): string | undefined {
    const words = item.split(/[\s;|]+/).filter((word) => word !== '');
    if (words.length < 2) return undefined;
    const values = new Set<Value>();
    for (const word of words) {
      const result = read(word);
      if ('explain' in result) return undefined;
      values.add(result.value);
    }
    const list = printable([...values].join(','), 200);
    return `"${printable(item)}" is not a ${what}. Separate the items by commas: ${list}`;
  }
}

function match<Word extends string>(text: string, words: readonly Word[]): Word | undefined {
  const wanted = text.toUpperCase();
  return words.find((word) => word === wanted);
}

function suggest(what: 'role' | 'resource' | 'action', item: string, words: readonly string[]): string {
  const close = nearest(item, words);
  if (close.length > 0) return `Did you mean ${formatList(close, 'or')}?`;
  return `The ${what}s are ${formatList(words)}.`;
}
