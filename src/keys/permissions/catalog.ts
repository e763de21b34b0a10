/** The resources that every installation knows. A host adds its own. */
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

/** What may be done: on any object of a resource, or on the caller's own ones. `X_ANY` includes `X_OWN`. */
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
export type Action = (typeof ACTIONS)[number];

export const ROLES = ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST'] as const;
export type Role = (typeof ROLES)[number];

/** A permission as it is written on the command line and stored: `RESOURCE:ACTION`. */
export type Permission = `${string}:${Action}`;

/** What can be granted in one installation: the built-in resources and the host's own, and what each role stands for. */
export interface Catalog {
  readonly resources: readonly string[];
  readonly actions: readonly Action[];
  readonly roles: readonly Role[];
  /** The permissions that a role stands for. */
  permissionsOf(role: Role): readonly Permission[];
}

export const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  ADMIN: 'Full system access: every action on every resource.',
  CONNECT: 'Access to the cloud-connection features, and all of GUEST.',
  VIEWER: 'Read-only access to every resource but those that hold credentials, and all of GUEST.',
  GUEST: 'Limited access: its own key, and whether the service is online.',
};

const RESOURCE_NAME = /^[A-Z][A-Z0-9_]{0,63}$/;
const CREDENTIAL_RESOURCES: ReadonlySet<string> = new Set(['API_KEY', 'ACTIVATION_CODE']);
const GUEST: readonly Permission[] = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];

/**
 * Makes the catalog of an installation.
 * @param hostResources the host's own resource names: capital letters, digits and underscores, at most 64
 * @throws Error when a name has another form
 */
export function createCatalog(hostResources: readonly string[] = []): Catalog {
  for (const name of hostResources) {
    if (!RESOURCE_NAME.test(name)) {
      throw new Error(`"${name}" is no resource name: use capital letters, digits and underscores, at most 64.`);
    }
  }
  const resources = [...new Set<string>([...RESOURCES, ...hostResources])];
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
        .filter((resource) => !CREDENTIAL_RESOURCES.has(resource))
        .map((resource): Permission => `${resource}:READ_ANY`),
      ...GUEST,
    ],
    GUEST,
  };
  return { resources, actions: ACTIONS, roles: ROLES, permissionsOf: (role) => permissions[role] };
}
