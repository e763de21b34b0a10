import { type Catalog, createCatalog, type Permission, type Role } from '../keys/permissions/catalog.ts';
import { NO_POLICY } from '../keys/permissions/policy.ts';
import type { Data } from './connection.ts';
import { permissionsIn } from './read-key.ts';

/** Reads what can be granted at a server. */
export function readCatalog({ resources, actions, roles }: Data): Catalog {
  const builtIn = createCatalog();
  const permissions = new Map<Role, readonly Permission[]>();
  const meanings = new Map<Role, string>();
  for (const { role, description, permissions: included } of roles) {
    permissions.set(role, permissionsIn(included));
    meanings.set(role, description);
  }
  const known = new Set<string>(
    resources.flatMap((name: string) => actions.map((action: string) => `${name}:${action}`)),
  );
  return {
    resources,
    actions,
    roles: [...permissions.keys()],
    // What is limited, and demanded, is decided there.
    defaultLimits: [],
    policy: NO_POLICY,
    declaredIn: 'the svc-api.yaml of the server',
    meaningOf: (role) => meanings.get(role) ?? '',
    permissionsOf: (role) => permissions.get(role) ?? [],
    includes: (role, other) => builtIn.includes(role, other),
    knows: (grant) => permissions.has(grant) || known.has(grant),
  };
}
