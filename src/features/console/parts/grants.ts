import { accessField, CUSTOM, NOTHING } from '../access-levels.ts';
import { type Action, partsOfAction, type ResourceActions } from '../../../keys/permissions/index.ts';

/** A role that can be granted. */
export interface GrantableRole {
  readonly role: string;
  /** Its purpose in a sentence. */
  readonly description: string;
  /** Its permissions; undefined if the person cannot see them. */
  readonly permissions?: readonly ResourceActions[] | undefined;
}

/** Grants to choose from. */
export interface Grantable {
  readonly permissions: readonly ResourceActions[];
  /** The resources to choose from, in their order. */
  readonly offered: readonly string[];
  readonly roles: readonly GrantableRole[];
  /** Roles and permissions of the person's own key that the policy lets no key grant. */
  readonly withheld: readonly string[];
}

/** The built-in actions in the order they are shown, the least powerful first. */
export const SHOWN_ACTIONS: readonly Action[] = ['READ', 'CREATE', 'UPDATE', 'DELETE'].flatMap((verb) =>
  ['OWN', 'ANY'].map((extent) => `${verb}_${extent}` as Action),
);

/** A verb in words, with its actions, each with its extent: an action of an installation can have none. */
export interface VerbActions {
  readonly verb: string;
  readonly actions: readonly { readonly action: Action; readonly extent: string }[];
}

/** Actions by their verbs, the built-in ones first, each verb with its least powerful action first. */
export function byVerb(actions: Iterable<Action>): VerbActions[] {
  const given = new Set(actions);
  const ordered = [
    ...SHOWN_ACTIONS.filter((action) => given.has(action)),
    ...[...given].filter((action) => !BUILT_IN.has(action)),
  ];
  const verbs = new Map<string, VerbActions['actions'][number][]>();
  for (const action of ordered) {
    const { verb, extent } = partsOfAction(action);
    verbs.set(verb, [...(verbs.get(verb) ?? []), { action, extent }]);
  }
  return Array.from(verbs, ([verb, of]) => ({
    verb,
    actions: of.toSorted((one, other) => EXTENTS.indexOf(one.extent) - EXTENTS.indexOf(other.extent)),
  }));
}

const BUILT_IN = new Set(SHOWN_ACTIONS);
const EXTENTS = ['', 'own', 'any'];

/** Says that the policy forbids a grant. */
export const WITHHELD = 'The policy of this service does not let keys grant this.';

/** Chosen grants, with permissions as `RESOURCE:ACTION`. */
export interface ChosenGrants {
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
}

/** Field names of a picker. Each is repeated for every choice. */
export const FIELDS = { role: 'role', permission: 'permission' } as const;

/** Reads the choices of a picker: levels of resources, and single permissions where no level is chosen. */
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
