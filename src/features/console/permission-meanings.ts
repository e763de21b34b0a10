import { partsOfAction, withoutIncluded } from '../../keys/permissions/actions.ts';

/** An action in words, to put before a resource: `read all`. */
export function meaningOfAction(action: string): string {
  const { verb, extent } = partsOfAction(action);
  return extent === '' ? verb : `${verb} ${extent === 'any' ? 'all' : 'its own'}`;
}

/** A verb for a key: `reads`, `publishes`, `applies`, `signs off`. */
function forKey(verb: string): string {
  const [first = '', ...rest] = verb.split(' ');
  const inflected = /[^aeiou]y$/.test(first)
    ? `${first.slice(0, -1)}ies`
    : `${first}${/(?:s|x|z|ch|sh)$/.test(first) ? 'es' : 's'}`;
  return [inflected, ...rest].join(' ');
}

/** A permission in words: `Can read all API keys.` @param permission `RESOURCE:ACTION` */
export function meaningOfPermission(permission: string): string {
  const [resource = '', action = ''] = permission.split(':');
  return `Can ${meaningOfAction(action)} ${wordsOfResource(resource)}.`;
}

export interface AllowedAction {
  readonly action: string;
  readonly resources: readonly string[];
}

const VERBS = ['READ', 'CREATE', 'UPDATE', 'DELETE'];

/**
 * Groups permissions by action. Leaves out `X_OWN` where `X_ANY` includes it.
 * @param permissions each as `RESOURCE:ACTION`
 */
export function groupByAction(permissions: Iterable<string>): AllowedAction[] {
  const resources = new Map<string, string[]>(
    VERBS.flatMap((verb) => [`${verb}_ANY`, `${verb}_OWN`]).map((a) => [a, []]),
  );
  for (const permission of withoutIncluded([...new Set(permissions)])) {
    const [resource = '', action = ''] = permission.split(':');
    resources.set(action, [...(resources.get(action) ?? []), resource]);
  }
  return Array.from(resources, ([action, on]) => ({ action, resources: on.toSorted() })).filter(
    ({ resources: on }) => on.length > 0,
  );
}

/** The built-in roles in words. */
const ROLE_WORDS: Readonly<Record<string, string>> = {
  ADMIN: 'Does everything',
  CONNECT: 'Connects to the cloud',
  VIEWER: 'Reads everything except credentials',
  GUEST: 'Reads its own key',
};

/** A role in a few words: `Reads everything except credentials`. For roles of an installation, the name. */
function wordsOfRole(role: string): string {
  return ROLE_WORDS[role] ?? `Role ${role}`;
}

/** Names of resources that are not simply lower case. */
const RESOURCE_WORDS: Readonly<Record<string, string>> = {
  API_KEY: 'API keys',
  CONNECT__REMOTE_ACCESS: 'remote access',
  DOCKER: 'Docker',
  ME: 'key details',
  OS: 'the OS',
  VMS: 'VMs',
  VARS: 'variables',
};

/** A resource in words: `activation code`. */
function wordsOfResource(resource: string): string {
  return RESOURCE_WORDS[resource] ?? resource.toLowerCase().replaceAll(/_+/g, ' ');
}

/** Some permissions in a few words, with their codes. */
export interface AccessWords {
  /** Such as `Updates Docker`. */
  readonly words: string;
  /** The permissions, or the role, described by the words. */
  readonly codes: readonly string[];
}

/** The number of resources up to which they are named; more are only counted. */
const NAMED_RESOURCES = 3;

/** Grants in a few words for each role, and for each action of the permissions. */
export function wordsOfGrants({
  roles,
  permissions,
}: {
  roles: readonly string[];
  /** Each as `RESOURCE:ACTION`. */
  permissions: readonly string[];
}): AccessWords[] {
  const byRole = roles.map((role) => ({ words: wordsOfRole(role), codes: [role] }));
  return [...byRole, ...groupByAction(permissions).map(wordsOfAction)];
}

function wordsOfAction({ action, resources }: AllowedAction): AccessWords {
  const { verb, extent } = partsOfAction(action);
  const names = resources.map(wordsOfResource);
  const named = names.length > NAMED_RESOURCES + 1 ? names.slice(0, NAMED_RESOURCES) : names;
  const others = names.length - named.length;
  const all = [...named, ...(others > 0 ? [`${others} more`] : [])];
  const listed = all.length > 1 ? `${all.slice(0, -1).join(', ')} and ${all.at(-1)}` : (all[0] ?? '');
  const what = extent === 'own' ? `its own ${listed}` : listed;
  return {
    words: `${forKey(verb).replace(/^./, (letter) => letter.toUpperCase())} ${what}`,
    codes: resources.map((resource) => `${resource}:${action}`),
  };
}

/**
 * Checks whether it lets a key create further keys, which are easy to overlook in a list.
 * @param permission `RESOURCE:ACTION`
 */
export function createsKeys(permission: string): boolean {
  return permission === 'API_KEY:CREATE_OWN' || permission === 'API_KEY:CREATE_ANY';
}

/** An item of a scope in a few words: `role:VIEWER`, or `RESOURCE:ACTION`. */
export function wordsOfScope(scope: string): string {
  if (scope.startsWith('role:')) return wordsOfRole(scope.slice('role:'.length));
  if (createsKeys(scope)) return 'Can create further keys';
  return wordsOfGrants({ roles: [], permissions: [scope] })[0]?.words ?? scope;
}
