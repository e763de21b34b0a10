import type { Permission, Role } from '../permissions/index.ts';

/** The roles and permissions of a key. */
export interface Grants {
  roles: Role[];
  permissions: Permission[];
}
