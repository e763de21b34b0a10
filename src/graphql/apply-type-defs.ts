/** How many keys one request may declare. */
export const MAX_DECLARED_KEYS = 1000;

/** The part of the schema that is about declared keys. */
export const APPLY_TYPE_DEFS = `
extend type Mutation {
  "Brings keys to what is declared, in one transaction, and writes nothing where they are so already. A key that is not declared stays, unless it was made so and is pruned."
  applyApiKeys("What is declared." input: ApplyApiKeysInput!): AppliedApiKeys! @requires(resource: API_KEY, action: UPDATE_OWN)
}

"""Declared keys."""
input ApplyApiKeysInput {
  "The keys, at most ${MAX_DECLARED_KEYS}."
  keys: [DeclaredApiKeyInput!]!
  "Whether keys that were made so and are declared no longer are deleted. Others never are."
  prune: Boolean = false
  "Whether to tell only what would change."
  dryRun: Boolean = false
}

"""A key as it is to be. What is left out is none, but for 'enabled'."""
input DeclaredApiKeyInput {
  "Letters, digits and spaces, at most 100 characters."
  name: String!
  "What it is for, at most 1,000 characters."
  description: String
  "All roles that it is to have. At least one role or permission is needed."
  roles: [Role!]
  "All permissions that it is to have."
  permissions: [PermissionInput!]
  "When it is to end by itself."
  expiresAt: DateTime
  "Whether it is to be let in; left out, it stays as it is."
  enabled: Boolean
}

"""What was changed, or would be."""
type AppliedApiKeys {
  "The changes."
  changes: [AppliedChange!]!
  "The new keys with their secrets; none where it was only to be told."
  created: [CreatedApiKey!]!
  "How many declared keys were so already."
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
  "What changes."
  changes: [AuditChange!]!
}
`;
