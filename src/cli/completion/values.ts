import { ACTIONS, RESOURCES, ROLES } from '../../keys/permissions/catalog.ts';
import { STATUSES } from '../../keys/key/status.ts';

/** What flags take, as the shells offer it. */
export const VALUES = {
  roles: ROLES,
  resources: RESOURCES,
  actions: ACTIONS,
  statuses: STATUSES.map((status) => status.toLowerCase()),
} as const;
