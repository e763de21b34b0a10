import { type DeclaredKey, type Plan, readDeclaration } from '../keys/apply/declaration.ts';
import { auditChange, type AuditValues } from '../keys/audit/audit-entry.ts';
import type { Role } from '../keys/permissions/catalog.ts';
import type { ResourceActions } from '../keys/permissions/permission-set.ts';
import type { KeysService } from '../keys/service.ts';
import { formatTime } from '../keys/time.ts';
import type { Resolvers } from './extension.ts';
import { refuseNulls } from './nulls.ts';
import { auditChanges, badInput, type Resolve } from './resolve.ts';

/** The number of keys that one request may declare. */
const MAX_DECLARED_KEYS = 1000;

/** The schema for declared keys. */
export const APPLY_TYPE_DEFS = `
extend type Mutation {
  """
  Brings keys to their declared state, in one transaction; writes nothing if they are in it already. Keys that are not
  declared stay; with 'prune', those that an apply created are deleted.
  """
  applyApiKeys(
    "The declaration."
    input: ApplyApiKeysInput!
  ): AppliedApiKeys @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
}

"""A declaration of keys."""
input ApplyApiKeysInput {
  "The keys, at most ${MAX_DECLARED_KEYS}."
  keys: [DeclaredApiKeyInput!]!
  "Whether to delete keys that an apply created and that are no longer declared. Others are never deleted."
  prune: Boolean = false
  "Whether only to report what would change."
  dryRun: Boolean = false
}

"""A key in its declared state. An omitted field means none, except for 'enabled'."""
input DeclaredApiKeyInput {
  "Letters, digits and spaces, at most 100 characters."
  name: String!
  "What it is for, at most 1,000 characters."
  description: String
  "All its roles. At least one role or permission is required."
  roles: [Role!]
  "All its permissions besides the roles."
  permissions: [PermissionInput!]
  "All its limits, such as 100/m."
  limits: [String!]
  "The networks that it may be used from, such as 10.0.0.0/8, at least one; null, or omitted, for anywhere."
  allowFrom: [String!]
  "When it expires."
  expiresAt: DateTime
  "Whether it is accepted; omitted, it stays as it is."
  enabled: Boolean
}

"""What was changed, or would be."""
type AppliedApiKeys {
  "The changes."
  changes: [AppliedChange!]!
  "The new keys with their secrets; none on a dry run."
  created: [CreatedApiKey!]!
  "The number of declared keys that need no change."
  unchanged: Int!
}

"""What is done to a key."""
enum AppliedAction {
  "It is created."
  CREATE
  "It is changed."
  UPDATE
  "It is deleted."
  DELETE
}

"""A change of a key."""
type AppliedChange {
  "What is done."
  action: AppliedAction!
  "The name of the key."
  name: String!
  "Its id; null if it does not exist yet."
  keyId: ID
  "What changes."
  changes: [AuditChange!]!
}
`;

interface DeclaredInput {
  name: string;
  description?: string | null;
  roles?: Role[] | null;
  permissions?: ResourceActions[] | null;
  limits?: string[] | null;
  allowFrom?: string[] | null;
  expiresAt?: string | null;
  enabled?: boolean | null;
}

/** The resolvers for declared keys. */
export function applyResolversOf(keys: KeysService): Resolvers {
  const applyApiKeys: Resolve<{
    input: { keys: DeclaredInput[]; prune: boolean; dryRun: boolean };
  }> = async (_, { input }, { principal }) => {
    refuseNulls(input);
    if (input.keys.length > MAX_DECLARED_KEYS)
      throw badInput(`There are ${input.keys.length} keys; at most ${MAX_DECLARED_KEYS} are allowed.`);
    const declared = await readDeclaration({ keys: input.keys.map(declarationOf) }, keys.catalog);
    const options = { prune: input.prune };
    if (input.dryRun) {
      const plan = await keys.plan(declared, options, principal);
      return { changes: changesIn(plan), created: [], unchanged: plan.unchanged };
    }
    const { plan, created } = await keys.apply(declared, options, principal);
    return {
      changes: changesIn(plan),
      created: created.map((each) => ({ ...each, replaced: [] })),
      unchanged: plan.unchanged,
    };
  };
  return { Mutation: { applyApiKeys } };
}

/** The form in which a file declares a key, so that both are read by the same rules. */
function declarationOf({ permissions, ...fields }: DeclaredInput): object {
  return {
    ...fields,
    permissions:
      permissions && permissions.flatMap(({ resource, actions }) => actions.map((action) => `${resource}:${action}`)),
  };
}

function changesIn({ creates, updates, deletes }: Plan): object[] {
  return [
    ...creates.map((key) => ({ action: 'CREATE', name: key.name, changes: auditChanges(null, valuesOf(key)) })),
    ...updates.map(({ before, after }) => {
      const change = auditChange(before, after);
      return {
        action: 'UPDATE',
        name: after.name,
        keyId: after.id,
        changes: auditChanges(change.before, change.after),
      };
    }),
    ...deletes.map(({ id, name }) => ({ action: 'DELETE', name, keyId: id, changes: [] })),
  ];
}

function valuesOf({ expiresAt, ...key }: DeclaredKey): AuditValues {
  return { ...key, expiresAt: formatTime(expiresAt) };
}
