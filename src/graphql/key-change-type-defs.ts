import { DEFAULT_GRACE } from '../keys/key/rotation.ts';

/** The types of changes that are made to keys, and of what comes of them, in SDL. */
export const KEY_CHANGE_TYPE_DEFS = `
"""A key to create."""
input CreateApiKeyInput {
  "Letters, digits and spaces, at most 100 characters."
  name: String!
  "What it is for, at most 1,000 characters."
  description: String
  "Roles to grant. At least one role or permission is required."
  roles: [Role!]
  "Permissions to grant."
  permissions: [PermissionInput!]
  "How many requests it may make, such as 100/m: a number and s, m, h, d or month, each of these once."
  limits: [String!]
  "The networks that it may be used from, such as 10.0.0.0/8, at least one; null for anywhere."
  allowFrom: [String!]
  "When it expires. Defaults to, and may not be later than, the expiry of the key that creates it."
  expiresAt: DateTime
  "How long it lives, in place of expiresAt: a number with s, m, h, d or w, such as 30d."
  expiresIn: String
  """
  Replace the key of that name, if there is one: its secret stops working, and the keys that it created are deleted
  with it.
  """
  overwrite: Boolean = false
}

"""Changes to a key. Omitted fields stay as they are; null is refused where it means nothing."""
input UpdateApiKeyInput {
  "The id of the key."
  id: ID!
  "The new name."
  name: String
  "The new description; null removes it."
  description: String
  "All roles that the key is to have."
  roles: [Role!]
  "All permissions that the key is to have."
  permissions: [PermissionInput!]
  "All limits that the key is to have; an empty list removes them."
  limits: [String!]
  "All networks that it may be used from; null for anywhere."
  allowFrom: [String!]
  "When it expires; null removes the expiry."
  expiresAt: DateTime
  "How long it lives from now on, in place of expiresAt: a number with s, m, h, d or w, such as 30d."
  expiresIn: String
}

"""How to rotate the secret of a key."""
input RotateApiKeyInput {
  "The id of the key."
  id: ID!
  "How long the previous secret still works: a number with s, m, h, d or w; 0s for not at all; at most 90d."
  grace: String = "${DEFAULT_GRACE}"
  "When the grace period begins."
  activate: RotationActivation = NOW
  "Whether to disable the keys that it has created: after a leak they are the thief's."
  disableCreated: Boolean = false
  "Only those created since this time."
  createdSince: DateTime
}

"""A key with a new secret."""
type RotatedApiKey {
  "The new secret. It is shown here and never again."
  key: String!
  "The key."
  apiKey: ApiKey!
  "The keys that it has created, as far as the requesting key may read them."
  created: [ApiKey!]!
  "Those of them that were disabled by the rotation."
  disabled: [ApiKey!]!
  "What it did to others, and is in force, where those that it has created are disabled."
  issued: [IssuedChange!]!
}

"""A key that was just created."""
type CreatedApiKey {
  "The secret. It is shown here and never again."
  key: String!
  "The key."
  apiKey: ApiKey!
  "What was deleted for it: the key of its name first, then the keys that this one had created."
  replaced: [DeletedApiKey!]!
}

"""What a key would be."""
type ApiKeyPreview {
  "The name."
  name: String!
  "What it would be for."
  description: String
  "Its roles and permissions, as text."
  grants: [String!]!
  "How many requests it could make."
  limits: [String!]!
  "The networks that it could be used from; null for anywhere."
  allowFrom: [String!]
  "When it would expire; null for never."
  expiresAt: DateTime
  "Everything that its roles and permissions would allow together."
  effectivePermissions: [Permission!]!
  "What would be deleted for it: the key of its name first, then the keys that this one had created."
  replaced: [DeletedApiKey!]!
}

"""The keys that were deleted."""
type DeletedApiKeys {
  "How many, including those that the given keys created."
  deleted: Int!
  "The keys."
  keys: [DeletedApiKey!]!
  "What the given keys did to others, and is in force: containKey undoes it, also by the id of a key that is gone."
  issued: [IssuedChange!]!
}

"""What a key did to another one."""
enum IssuedKind {
  "It gave it a secret, by rotating it or rolling its rotation back."
  SECRET
  "It gave it more: grants, a later end, wider limits or networks."
  WIDENING
  "It enabled it."
  ENABLING
  "It agreed to the request of an application, which has not got the key yet."
  APPROVAL
  "It created it, and so knows its secret; the operator has adopted it since."
  ADOPTION
  "A key to which it gave a secret created it with that."
  CREATION
}

"""
Something that a key did to another one, or that was done with a secret that it issued, and that is in force. What the
requesting key may not read is left out.
"""
type IssuedChange {
  "The name of the other key, or the one that it is to have."
  name: String!
  "Its id; null if it does not exist yet."
  keyId: ID
  "What was done."
  what: IssuedKind!
  "When."
  at: DateTime!
  "Whether the other key is disabled already."
  disabled: Boolean!
}

"""Which key to contain."""
input ContainKeyInput {
  "Its id, also of a key that was deleted."
  id: ID
  "Its name, in place of the id."
  name: String
  "Undo only what it did to others since this time. It and all beneath it are disabled in any case."
  since: DateTime
  "Whether only to report what would be done."
  dryRun: Boolean = false
}

"""What containing a key did, or would do."""
type ContainedKey {
  "The id of the key."
  keyId: ID!
  "Its latest name."
  name: String!
  "Whether the key is still there."
  exists: Boolean!
  "What it did to others, oldest first."
  issued: [IssuedChange!]!
  "The keys that change, the contained one first."
  changes: [AppliedChange!]!
  "The requests that it agreed to, whose applications get no key."
  requests: [CancelledRequest!]!
}

"""A request of an application that gets no key."""
type CancelledRequest {
  "The id of the request."
  requestId: ID!
  "The application, as it names itself."
  clientName: String!
  "The name that its key was to have."
  keyName: String!
}

"""A key that was deleted."""
type DeletedApiKey {
  "The id that it had."
  id: ID!
  "The name that it had."
  name: String!
}
`;
