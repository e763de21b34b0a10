import * as v from 'valibot';
import { isRecord, parseRates, withoutUndefined } from '../../keys/basics/index.ts';
import {
  ACTIONS,
  BUILTIN_RESOURCES,
  type Catalog,
  type Grant,
  invalidAction,
  invalidResource,
  invalidRole,
  MAX_ACTIONS,
  MAX_KEYS_PER_CREATOR,
  NAME,
  parsePermissions,
  parseRoles,
  type Permission,
  type PolicyRules,
  readPolicy,
  ROLES,
} from '../../keys/permissions/index.ts';
import { invalidPrefix } from '../../keys/secret/index.ts';
import { CORE_DEFAULTS } from '../config.ts';
import { DURATION, LIMIT, PERMISSION } from '../patterns.ts';
import {
  atMost,
  distinct,
  either,
  json,
  map,
  named,
  namesAtMost,
  oneOf,
  optional,
  parsed,
  readBy,
  required,
  rule,
  textWith,
} from '../schema.ts';
import { section } from '../section.ts';
import { limit, permissionsOf } from '../values.ts';

/** The most resources, and the most roles, since each is in the GraphQL schema. */
const MAX_DECLARED = 1000;

const NAMED = { pattern: NAME.source };
const BOTH = 'A resource must be a name, or a map with the field "name", and "credentials".';
const resource = either(
  [
    v.pipe(
      textWith((name) => invalidResource({ name }), NAMED),
      v.transform((name): { name: string; credentials?: boolean } => ({ name })),
    ),
    v.pipe(
      map({
        name: required(v.pipe(v.string(), json(NAMED))),
        credentials: optional(v.boolean(), 'True if the resource holds credentials. VIEWER then cannot read it.'),
      }),
      v.transform(withoutUndefined),
      rule(invalidResource),
    ),
  ],
  BOTH,
);

export const resources = section({
  description:
    'Your own resources, in addition to the built-in ones: capital letters, digits and underscores, at most 64. VIEWER ' +
    'cannot read those that hold credentials.',
  otherwise: 'none',
  page: '#resources-and-roles',
  schema: () =>
    v.pipe(
      v.array(resource),
      atMost(MAX_DECLARED, 'resources'),
      distinct(
        ({ name }) => name,
        (name) => `"${name}" is declared more than once.`,
      ),
    ),
  into: (resources) => ({ resources }),
});

export const builtinResources = section({
  description:
    '"shown" to offer the built-in resources after your own, or "hidden" to offer only your own. Hidden ones stay in ' +
    'force.',
  otherwise: 'shown',
  page: '#resources-and-roles',
  schema: () => oneOf(BUILTIN_RESOURCES),
  into: (builtinResources) => ({ builtinResources }),
});

const action = textWith(invalidAction, { pattern: NAME.source, not: { enum: [...ACTIONS] } });

export const actions = section({
  description:
    'Your own actions, such as PUBLISH, in addition to the built-in ones, named like resources. X_ANY also declares X_OWN, ' +
    'and includes it.',
  otherwise: 'none',
  page: '#actions',
  schema: () =>
    v.pipe(
      v.array(action),
      atMost(MAX_ACTIONS, 'actions'),
      distinct(
        (name) => name,
        (name) => `"${name}" is declared more than once.`,
      ),
    ),
  into: (actions) => ({ actions }),
});

export const prefix = section({
  description:
    'The start of new secrets, such as acme for acme_…: 2 to 12 letters and digits. Existing keys keep working.',
  otherwise: 'svc',
  page: '#prefix',
  schema: () => textWith(invalidPrefix, { pattern: '^[0-9A-Za-z]{2,12}$' }),
  into: (prefix) => ({ prefix }),
});

/** The valid actions of the file. */
export function validActions(given: unknown): string[] {
  return (Array.isArray(given) ? given : []).flatMap((item) => {
    const read = readBy(action, item, []);
    return 'output' in read ? [read.output] : [];
  });
}

/** The valid resources of the file. */
export function validResources(given: unknown) {
  return (Array.isArray(given) ? given : []).flatMap((item) => {
    const read = readBy(resource, item, []);
    return 'output' in read ? [read.output] : [];
  });
}

const PERMISSIONS = 'must be a map of names to lists of permissions.';

export const roles = section({
  description:
    'Your own roles, in addition to the built-in ones: each is a list of permissions. They are named like resources.',
  otherwise: 'none',
  schema: ({ catalog }) =>
    v.pipe(
      named(
        v.pipe(v.string(), rule(invalidRole), json({ ...NAMED, not: { enum: ROLES } })),
        permissionsOf(catalog, 'The role "{field}" needs at least one permission.'),
        PERMISSIONS,
      ),
      namesAtMost(MAX_DECLARED, 'roles'),
    ),
  into: (roles) => ({ roles }),
});

/** The valid roles of the file. @param catalog with all resources */
export function validRoles(given: unknown, catalog: Catalog): Record<string, readonly Permission[]> {
  const permissions = permissionsOf(catalog);
  const entries = Object.entries(isRecord(given) ? given : {}).flatMap(([name, items]): [string, Permission[]][] => {
    const read = readBy(permissions, items, []);
    if (invalidRole(name) !== undefined) return [];
    return [[name, 'output' in read ? read.output : []]];
  });
  return Object.fromEntries(entries);
}

/** A rule of the policy, checked by the rules of keys. */
function policyRule<Name extends keyof PolicyRules>(name: Name) {
  return rule<NonNullable<PolicyRules[Name]>>((value) =>
    readPolicy({ [name]: value }).issues.map(({ message }) => message),
  );
}

export const policy = section({
  description: 'Rules for all keys.',
  otherwise: 'none',
  page: '#policy',
  schema: ({ catalog }) =>
    v.pipe(
      map({
        maxLifetime: optional(
          v.pipe(v.string(), policyRule('maxLifetime'), json(DURATION)),
          'The longest time until a key expires.',
          { otherwise: 'any expiry, or none' },
        ),
        requireExpiry: optional(v.boolean(), 'Every key must expire.', { otherwise: 'false' }),
        grantableByKeys: optional(
          parsed((items) => parseNamed(items, catalog), {
            anyOf: [{ type: 'string', pattern: '^\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*$' }, PERMISSION],
          }),
          'Roles and permissions that keys can grant.',
          { otherwise: 'what they hold' },
        ),
        maxKeysPerCreator: optional(
          v.pipe(
            v.number('must be a number.'),
            policyRule('maxKeysPerCreator'),
            json({ type: 'integer', minimum: 1, maximum: MAX_KEYS_PER_CREATOR }),
          ),
          'How many live keys a key can have created.',
          { otherwise: 'any number' },
        ),
        disableUnused: optional(
          v.pipe(v.string(), policyRule('disableUnused'), json(DURATION)),
          'After how long without use a key is disabled: a day or more.',
          { otherwise: 'never' },
        ),
      }),
      v.transform(withoutUndefined),
    ),
  into: (policy) => ({ policy: { requireExpiry: false, ...policy } }),
});

function parseNamed(items: readonly string[], catalog: Catalog) {
  const parsed = items.map((item) =>
    item.includes(':') ? parsePermissions([item], catalog) : parseRoles([item], catalog),
  );
  const values = new Set(parsed.flatMap(({ values: [grant] }): Grant[] => (grant ? [grant] : [])));
  return { values: [...values], issues: parsed.flatMap(({ issues }) => issues) };
}

export const limits = section({
  description: 'Limits of requests.',
  schema: () =>
    map(
      {
        default: optional(parsed(parseRates, LIMIT), 'Limits of each key that has none of its own.', {
          otherwise: 'no limit',
          page: 'limits.md',
        }),
        failedCredentials: optional(limit, 'Limit of requests with invalid keys from one address.', {
          otherwise: '20/m',
          page: 'limits.md#keys-that-are-not-valid',
        }),
      },
      'must be a map with the fields "default" and "failedCredentials".',
    ),
  into: ({ default: all = [], failedCredentials = CORE_DEFAULTS.limits.failedCredentials }) => ({
    limits: { default: all, failedCredentials },
  }),
});
