/** The built-in resources. A host adds its own. */
const RESOURCES = [
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

/** The roles: named sets of permissions. */
export const ROLES = ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST'] as const;
/** One of `ROLES`. */
export type Role = (typeof ROLES)[number];

/** `RESOURCE:ACTION`, as written on the command line and stored. */
export type Permission = `${string}:${Action}`;

/** Everything that can be granted in one installation. */
export interface Catalog {
  /** The built-in resources and the host's own. */
  readonly resources: readonly string[];
  /** All actions. */
  readonly actions: readonly Action[];
  /** All roles. */
  readonly roles: readonly Role[];
  /** The permissions that a role includes. */
  permissionsOf(role: Role): readonly Permission[];
  /** The roles that a role includes: itself, and those that its definition names. */
  rolesIn(role: Role): readonly Role[];
}

/** What each role is for, as shown to users. */
export const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  ADMIN: 'Full system access: every action on every resource.',
  CONNECT: 'Access to the cloud-connection features, and all of GUEST.',
  VIEWER: 'Read-only access to every resource except those that hold credentials, and all of GUEST.',
  GUEST: 'Limited access: its own key, and whether the service is online.',
};

/** A resource of the host: its name, or its name and whether it holds credentials, which keeps it out of VIEWER. */
export type HostResource = string | { readonly name: string; readonly credentials?: boolean };

const RESOURCE_NAME = /^[A-Z][A-Z0-9_]{0,63}$/;
const CREDENTIAL_RESOURCES: ReadonlySet<string> = new Set(['API_KEY', 'ACTIVATION_CODE']);
const GUEST: readonly Permission[] = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];

const INCLUDED_ROLES: Readonly<Record<Role, readonly Role[]>> = {
  ADMIN: ROLES,
  CONNECT: ['CONNECT', 'GUEST'],
  VIEWER: ['VIEWER', 'GUEST'],
  GUEST: ['GUEST'],
};

/**
 * Creates the catalog of an installation.
 * @param hostResources the host's own resources; their names have capital letters, digits and underscores, at most 64
 * @throws Error if a name is invalid, or a built-in resource would change
 */
export function createCatalog(hostResources: readonly HostResource[] = []): Catalog {
  const declared = hostResources.map((resource) => (typeof resource === 'string' ? { name: resource } : resource));
  for (const { name, credentials } of declared) {
    if (credentials !== undefined && (RESOURCES as readonly string[]).includes(name))
      throw new Error(`"${name}" is a built-in resource: whether it holds credentials cannot be changed.`);
    if (!RESOURCE_NAME.test(name)) {
      throw new Error(`"${name}" is not a resource name: use capital letters, digits and underscores, at most 64.`);
    }
  }
  const resources = [...new Set<string>([...RESOURCES, ...declared.map(({ name }) => name)])];
  const credentials = new Set(declared.filter((resource) => resource.credentials).map(({ name }) => name));
  const permissions: Record<Role, readonly Permission[]> = {
    ADMIN: resources.flatMap((resource) => ACTIONS.map((action): Permission => `${resource}:${action}`)),
    CONNECT: [
      ...['CLOUD', 'CONNECT', 'CONNECT__REMOTE_ACCESS'].flatMap((resource): Permission[] => [
        `${resource}:READ_ANY`,
        `${resource}:UPDATE_ANY`,
      ]),
      ...GUEST,
    ],
    VIEWER: [
      ...resources
        .filter((resource) => !CREDENTIAL_RESOURCES.has(resource) && !credentials.has(resource))
        .map((resource): Permission => `${resource}:READ_ANY`),
      ...GUEST,
    ],
    GUEST,
  };
  return {
    resources,
    actions: ACTIONS,
    roles: ROLES,
    permissionsOf: (role) => permissions[role],
    rolesIn: (role) => INCLUDED_ROLES[role],
  };
}
