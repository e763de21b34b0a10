/** The number of keys that one request may declare. */
export const MAX_DECLARED_KEYS = 1000;

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
