import { ACTIONS, RESOURCES, ROLES } from '../../keys/permissions/catalog.ts';
import { STATUSES } from '../../keys/key/status.ts';

/** The values that the shells complete. */
export const VALUES = {
  roles: ROLES,
  resources: RESOURCES,
  actions: ACTIONS,
  statuses: STATUSES.map((status) => status.toLowerCase()),
} as const;
