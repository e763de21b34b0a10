import { ACTIONS, type Catalog, ROLE_MEANINGS, ROLES } from '../keys/permissions/catalog.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../keys/page.ts';
import { DEFAULT_GRACE } from '../keys/key/rotation.ts';

/** The schema in SDL. `Resource` is made from the catalog, so that it holds the host's resources as well. */
export function typeDefsOf(catalog: Catalog): string {
  return `
"""The permission that a field asks for. Without it the field answers with the error FORBIDDEN."""
directive @requires(
  "What the permission is about."
  resource: Resource!
  "What may be done with it."
  action: AuthAction!
) on FIELD_DEFINITION

"""A date and time by RFC 3339, in UTC."""
scalar DateTime

"""What a permission is about."""
enum Resource {
${catalog.resources.map((name) => `  "${describeResource(name)}"\n  ${name}`).join('\n')}
}

"""What may be done with a resource: ANY is all of it and includes OWN, which is what belongs to the key."""
enum AuthAction {
${ACTIONS.map((name) => `  "${describeAction(name)}"\n  ${name}`).join('\n')}
}

"""A named set of permissions."""
enum Role {
${ROLES.map((name) => `  "${ROLE_MEANINGS[name]}"\n  ${name}`).join('\n')}
}

"""Whether a key is let in."""
enum ApiKeyStatus {
  "It is let in."
  ACTIVE
  "It was switched off, and can be switched on again."
  DISABLED
  "Its end has come."
  EXPIRED
}

"""An object that has an id of its own."""
interface Node {
  "A UUID."
  id: ID!
}

"""The questions that a key may ask."""
type Query {
  "The key that asks."
  me: ApiKey! @requires(resource: ME, action: READ_OWN)
  "True whenever it answers."
  online: Boolean! @requires(resource: ONLINE, action: READ_ANY)
  "The program that answers."
  info: Info! @requires(resource: INFO, action: READ_ANY)
  "Keys, oldest first. With READ_OWN alone: the key that asks and those that it created."
  apiKeys(
    "How many keys at most, up to ${MAX_PAGE_SIZE}."
    first: Int = ${DEFAULT_PAGE_SIZE}
    "The endCursor of the page before."
    after: String
    "A part of the name or the description."
    search: String
    "Only keys with one of these roles."
    roles: [Role!]
    "Only keys of this status."
    status: ApiKeyStatus
  ): ApiKeyConnection! @requires(resource: API_KEY, action: READ_OWN)
  "A key by its id or by its name; null where there is none that this key may read."
  apiKey("The id of the key." id: ID, "The name of the key." name: String): ApiKey @requires(resource: API_KEY, action: READ_OWN)
  "All that can be granted."
  permissions: PermissionCatalog! @requires(resource: PERMISSION, action: READ_ANY)
  "What roles and permissions would allow together."
  previewPermissions(
    "Roles to combine."
    roles: [Role!]
    "Permissions to add to them."
    permissions: [PermissionInput!]
  ): [Permission!]! @requires(resource: PERMISSION, action: READ_ANY)
}

"""What a key may change."""
type Mutation {
  "Makes a key. Nobody grants more than they hold."
  createApiKey("The new key." input: CreateApiKeyInput!): CreatedApiKey! @requires(resource: API_KEY, action: CREATE_OWN)
  "Changes a key; what is left out stays. With UPDATE_OWN alone: the key that asks and those that it created."
  updateApiKey("The changes." input: UpdateApiKeyInput!): ApiKey! @requires(resource: API_KEY, action: UPDATE_OWN)
  "Switches a key off, so that it is refused, or on again. With UPDATE_OWN alone: as for updateApiKey."
  setApiKeyEnabled("The id of the key." id: ID!, "Whether it is to be let in." enabled: Boolean!): ApiKey! @requires(resource: API_KEY, action: UPDATE_OWN)
  "Gives a key a new secret, while the one before works until the grace ends. Nobody gets a secret that can do more than they. With UPDATE_OWN alone: as for updateApiKey."
  rotateApiKey("The rotation." input: RotateApiKeyInput!): RotatedApiKey! @requires(resource: API_KEY, action: UPDATE_OWN)
  "Ends the secret before at once. With UPDATE_OWN alone: as for updateApiKey."
  finishApiKeyRotation("The id of the key." id: ID!): ApiKey! @requires(resource: API_KEY, action: UPDATE_OWN)
  "Ends the new secret at once; the one before stays. With UPDATE_OWN alone: as for updateApiKey."
  rollBackApiKeyRotation("The id of the key." id: ID!): ApiKey! @requires(resource: API_KEY, action: UPDATE_OWN)
  "Deletes keys and all that they created. Ids that no key has are passed over. With DELETE_OWN alone: as for updateApiKey."
  deleteApiKeys("The ids of the keys, at most ${MAX_PAGE_SIZE}." ids: [ID!]!): DeletedApiKeys! @requires(resource: API_KEY, action: DELETE_OWN)
}

"""An API key. Its secret is no part of it."""
type ApiKey implements Node {
  "A UUID."
  id: ID!
  "The name, which only this key has."
  name: String!
  "What it is for."
  description: String
  "The roles that were granted."
  roles: [Role!]!
  "The permissions that were granted beside the roles."
  permissions: [Permission!]!
  "All that the roles and permissions allow together."
  effectivePermissions: [Permission!]!
  "The part of the secret that may be shown, as svc_<id>_…"
  prefix: String!
  "When it was created."
  createdAt: DateTime!
  "The id of the key that created it; null where the command line did."
  createdBy: ID
  "Whether it is let in."
  status: ApiKeyStatus!
  "When it ends by itself; null where it does not."
  expiresAt: DateTime
  "Whether it was made from a declaration."
  managed: Boolean!
  "How often it was let in: a whole number. Like the other fields about its use it is some seconds old."
  uses: Float!
  "When it was let in last; null where it never was."
  lastUsedAt: DateTime
  "The permissions that it has used."
  usedPermissions: [Permission!]!
  "The smallest permissions that allow all that it has used."
  suggestedPermissions: [Permission!]!
  "All that it may do and has never used."
  unusedPermissions: [Permission!]!
  "The secret that it had before, as long as that one works; null where it has one secret."
  rotation: ApiKeyRotation
}

"""A key that has two secrets for a while."""
type ApiKeyRotation {
  "When it got its newest secret."
  startedAt: DateTime!
  "The part of the secret before that may be shown."
  previousPrefix: String!
  "When the secret before ends; null while the new one has not been used yet."
  previousEndsAt: DateTime
  "When the secret before was last used since the rotation."
  previousLastUsedAt: DateTime
}

"""When the grace of the secret before begins."""
enum RotationActivation {
  "At once."
  NOW
  "When the new secret is first used."
  ON_FIRST_USE
}

"""The actions that are allowed on a resource."""
type Permission {
  "The resource."
  resource: Resource!
  "The actions."
  actions: [AuthAction!]!
}

"""Actions to allow on a resource."""
input PermissionInput {
  "The resource."
  resource: Resource!
  "The actions."
  actions: [AuthAction!]!
}

"""A page of keys, by the Relay cursor specification."""
type ApiKeyConnection {
  "The keys with their cursors."
  edges: [ApiKeyEdge!]!
  "Where the page stands in the list."
  pageInfo: PageInfo!
}

"""A key in a page."""
type ApiKeyEdge {
  "The key."
  node: ApiKey!
  "The place after this key."
  cursor: String!
}

"""Where a page stands in its list, by the Relay cursor specification."""
type PageInfo {
  "Whether keys follow this page."
  hasNextPage: Boolean!
  "Always false where the list is read forwards, which is the only way."
  hasPreviousPage: Boolean!
  "The cursor of the first key."
  startCursor: String
  "The cursor of the last key: give it as 'after' for the next page."
  endCursor: String
}

"""The running program."""
type Info {
  "The name of the program."
  name: String!
  "Its version."
  version: String!
  "When it was started."
  startedAt: DateTime!
  "For how long it has been running, in seconds."
  uptime: Float!
  "What it runs on, such as Node.js v24.15.0."
  runtime: String!
  "The operating system and processor, such as linux x64."
  platform: String!
}

"""All that can be granted."""
type PermissionCatalog {
  "The roles with what they grant."
  roles: [RoleGrants!]!
  "All resources."
  resources: [Resource!]!
  "All actions."
  actions: [AuthAction!]!
}

"""A role with what it grants."""
type RoleGrants {
  "The role."
  role: Role!
  "What the role is for."
  description: String!
  "What it grants."
  permissions: [Permission!]!
}

"""A key to make."""
input CreateApiKeyInput {
  "Letters, digits and spaces, at most 100 characters."
  name: String!
  "What it is for, at most 1,000 characters."
  description: String
  "Roles to grant. At least one role or permission is needed."
  roles: [Role!]
  "Permissions to grant."
  permissions: [PermissionInput!]
  "When it is to end by itself. A key that ends itself gives no key a later end, and this end where none is asked for."
  expiresAt: DateTime
  "Replace the key of that name, if there is one: its secret stops working, and the keys that it created go with it."
  overwrite: Boolean = false
}

"""Changes to a key. What is left out stays as it is."""
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
  "The new end; null takes it away."
  expiresAt: DateTime
}

"""A new secret for a key."""
input RotateApiKeyInput {
  "The id of the key."
  id: ID!
  "How long the secret before works on: a number with s, m, h, d or w; 0s for not at all."
  grace: String = "${DEFAULT_GRACE}"
  "When the grace begins."
  activate: RotationActivation = NOW
}

"""A key with a new secret."""
type RotatedApiKey {
  "The new secret. It is shown here and never again."
  key: String!
  "The key."
  apiKey: ApiKey!
}

"""A key that was just made."""
type CreatedApiKey {
  "The secret. It is shown here and never again."
  key: String!
  "The key."
  apiKey: ApiKey!
}

"""The keys that were deleted."""
type DeletedApiKeys {
  "How many: the named ones and those that they created."
  deleted: Int!
  "Which."
  keys: [DeletedApiKey!]!
}

"""A key that was deleted."""
type DeletedApiKey {
  "The id that it had."
  id: ID!
  "The name that it had."
  name: String!
}
`;
}

function describeResource(name: string): string {
  return `The resource ${name.toLowerCase().replaceAll('_', ' ').replaceAll(/ +/g, ' ')}.`;
}

function describeAction(name: string): string {
  const [verb = '', scope] = name.toLowerCase().split('_');
  return `To ${verb} ${scope === 'any' ? 'any object' : "the key's own objects"}.`;
}
