import { accessField, CUSTOM, NOTHING } from '../access-levels.ts';
import type { Action, ResourceActions } from '../../../keys/permissions/index.ts';

/** A role that can be granted. */
export interface GrantableRole {
  readonly role: string;
  /** What it is for, in a sentence. */
  readonly description: string;
  /** What it includes; undefined if that may not be read. */
  readonly permissions?: readonly ResourceActions[] | undefined;
}

/** What can be granted. */
export interface Grantable {
  readonly permissions: readonly ResourceActions[];
  /** The resources to choose from, in their order. */
  readonly offered: readonly string[];
  readonly roles: readonly GrantableRole[];
  /** What the key of whoever grants holds, and the policy lets no key grant: roles, and permissions. */
  readonly withheld: readonly string[];
}

/** What is done, and to what, in the order in which it is shown: what is harmless, and what is less, first. */
export const VERBS = ['READ', 'CREATE', 'UPDATE', 'DELETE'] as const;
export const EXTENTS = ['OWN', 'ANY'] as const;
/** The actions in that order. */
export const SHOWN_ACTIONS: readonly Action[] = VERBS.flatMap((verb) =>
  EXTENTS.map((extent): Action => `${verb}_${extent}`),
);

/** Why something cannot be granted by anybody who has signed in. */
export const WITHHELD = 'By the policy of this service, no key grants it.';

/** What is granted, with permissions as `RESOURCE:ACTION`. */
export interface ChosenGrants {
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
}

/** The names of the fields of a picker, which a form has as often as something is chosen. */
export const FIELDS = { role: 'role', permission: 'permission' } as const;

/** What a form with a picker has, each once: levels of resources, and single permissions where no level is chosen. */
export function chosenIn(form: URLSearchParams): ChosenGrants {
  const levels = new Map<string, string>();
  for (const [field, value] of form) {
    const resource = field.startsWith(ACCESS) ? field.slice(ACCESS.length) : '';
    if (resource !== '' && value !== '' && value !== CUSTOM) levels.set(resource, value);
  }
  const single = form.getAll(FIELDS.permission).filter((permission) => !levels.has(permission.split(':')[0]!));
  const leveled = Array.from(levels).flatMap(([resource, actions]) =>
    actions === NOTHING ? [] : actions.split(' ').map((action) => `${resource}:${action}`),
  );
  return { roles: [...new Set(form.getAll(FIELDS.role))], permissions: [...new Set([...leveled, ...single])] };
}

const ACCESS = accessField('');

/** Grants as GraphQL takes them. */
export function grantsInputOf({ roles, permissions }: ChosenGrants) {
  const rows = new Map<string, Set<string>>();
  for (const permission of permissions) {
    const [resource = '', action = ''] = permission.split(':');
    rows.set(resource, (rows.get(resource) ?? new Set()).add(action));
  }
  const grouped = Array.from(rows, ([resource, actions]) => ({ resource, actions: [...actions] }));
  return { roles: [...roles], permissions: grouped as ResourceActions[] };
}

/** Permissions as `RESOURCE:ACTION`, from the form that GraphQL has them in. */
export function permissionsOf(grouped: readonly ResourceActions[]): string[] {
  return grouped.flatMap(({ resource, actions }) => actions.map((action) => `${resource}:${action}`));
}
