import { APPLY_TYPE_DEFS } from './apply.ts';
import { AUDIT_TYPE_DEFS } from './audit-type-defs.ts';
import { CONSENT_TYPE_DEFS } from './consent-type-defs.ts';
import { COST_TYPE_DEFS } from './budget/cost-directives.ts';
import { DateTime } from './date-time.ts';
import { FORESIGHT_TYPE_DEFS } from './foresight-type-defs.ts';
import { KEY_CHANGE_TYPE_DEFS } from './key-change-type-defs.ts';
import { KEY_TYPE_DEFS } from './key-type-defs.ts';
import { ROUTE_TYPE_DEFS } from './route-type-defs.ts';
import { SERVICE_TYPE_DEFS } from './service-type-defs.ts';
import type { Catalog } from '../keys/permissions/catalog.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../keys/page.ts';

/** The built-in schema, in SDL, in parts. */
export function typeDefsOf(catalog: Catalog): string[] {
  return [
    rootTypeDefsOf(catalog),
    KEY_TYPE_DEFS,
    KEY_CHANGE_TYPE_DEFS,
    FORESIGHT_TYPE_DEFS,
    COST_TYPE_DEFS,
    AUDIT_TYPE_DEFS,
    APPLY_TYPE_DEFS,
    CONSENT_TYPE_DEFS,
    ROUTE_TYPE_DEFS,
    SERVICE_TYPE_DEFS,
  ];
}

/** What can be granted, asked and changed. What can be granted comes from the catalog, with all additions. */
function rootTypeDefsOf(catalog: Catalog): string {
  return `
"""The permission that a field requires. Without it, the field fails with the code FORBIDDEN."""
directive @requires(
  "The resource of the permission."
  resource: Resource!
  "The action of the permission."
  action: AuthAction!
) on FIELD_DEFINITION

"""${DateTime.description}"""
scalar DateTime @specifiedBy(url: "${DateTime.specifiedByURL}")

"""What a permission applies to."""
enum Resource {
${catalog.resources.map((name) => `  "${describeResource(name)}"\n  ${name}`).join('\n')}
}

"""What a permission allows: ANY covers every object of the resource, OWN only those of the key."""
enum AuthAction {
${catalog.actions.map((name) => `  "${describeAction(name)}"\n  ${name}`).join('\n')}
}

"""A named set of permissions."""
enum Role {
${catalog.roles.map((name) => `  "${catalog.meaningOf(name)}"\n  ${name}`).join('\n')}
}

"""Whether a key is accepted."""
enum ApiKeyStatus {
  "It is accepted."
  ACTIVE
  "It was disabled, and can be enabled again."
  DISABLED
  "It has expired."
  EXPIRED
}

"""An object with a global id."""
interface Node {
  "A UUID."
  id: ID!
}

"""What a key may read."""
type Query {
  "The key that makes the request."
  me: ApiKey @requires(resource: ME, action: READ_OWN)
  "Always true."
  online: Boolean @requires(resource: ONLINE, action: READ_ANY)
  "The running program."
  info: Info @requires(resource: INFO, action: READ_ANY)
  "Keys, oldest first. With only READ_OWN: the key itself and those that it created."
  apiKeys(
    "The maximum number of keys, up to ${MAX_PAGE_SIZE}."
    first: Int = ${DEFAULT_PAGE_SIZE}
    "The endCursor of the previous page."
    after: String
    "A part of the name or description, case-insensitive."
    search: String @cost(weight: 12000)
    "Only keys with one of these roles."
    roles: [Role!] @cost(weight: 6000)
    "Only keys of this status."
    status: ApiKeyStatus @cost(weight: 15000)
  ): ApiKeyConnection
    @requires(resource: API_KEY, action: READ_OWN)
    @cost(weight: 3)
    @listSize(assumedSize: ${MAX_PAGE_SIZE}, slicingArguments: ["first"])
  "A key by its id or name; null if there is none that the caller may read."
  apiKey(
    "The id of the key."
    id: ID
    "The name of the key."
    name: String
  ): ApiKey @requires(resource: API_KEY, action: READ_OWN) @cost(weight: 10)
  "An object by its global id, for clients that fetch it again; null if there is none that the caller may read."
  node(
    "The id of a key."
    id: ID!
  ): Node @requires(resource: API_KEY, action: READ_OWN) @cost(weight: 10)
  "Everything that can be granted."
  permissions: PermissionCatalog @requires(resource: PERMISSION, action: READ_ANY)
  "What createApiKey would make of this; nothing is written."
  previewApiKey(
    "The key."
    input: CreateApiKeyInput!
  ): ApiKeyPreview @requires(resource: API_KEY, action: CREATE_OWN) @cost(weight: 100)
  "What roles and permissions allow together."
  previewPermissions(
    "Roles to combine."
    roles: [Role!]
    "Permissions to add to them."
    permissions: [PermissionInput!]
  ): [Permission!] @requires(resource: PERMISSION, action: READ_ANY)
}

"""What a key may change."""
type Mutation {
  "Creates a key. The caller must hold every permission that it grants."
  createApiKey(
    "The new key."
    input: CreateApiKeyInput!
  ): CreatedApiKey @requires(resource: API_KEY, action: CREATE_OWN) @cost(weight: 250)
  "Changes a key; omitted fields stay as they are. With only UPDATE_OWN: the key itself and those that it created."
  updateApiKey(
    "The changes."
    input: UpdateApiKeyInput!
  ): ApiKey @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
  "Disables a key, so that it is refused, or enables it again. With only UPDATE_OWN: as for updateApiKey."
  setApiKeyEnabled(
    "The id of the key."
    id: ID!
    "Whether the key is accepted."
    enabled: Boolean!
  ): ApiKey @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
  """
  Gives a key a new secret; the previous one works until the grace period ends. The caller must hold every permission of
  the key. With only UPDATE_OWN: as for updateApiKey.
  """
  rotateApiKey(
    "The rotation."
    input: RotateApiKeyInput!
  ): RotatedApiKey @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
  """
  Begins the grace period of a rotation that waits for the first use of the new secret, as that has arrived. With only
  UPDATE_OWN: as for updateApiKey.
  """
  activateApiKeyRotation(
    "The id of the key."
    id: ID!
  ): ApiKey @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
  "Invalidates the previous secret at once. With only UPDATE_OWN: as for updateApiKey."
  finishApiKeyRotation(
    "The id of the key."
    id: ID!
  ): ApiKey @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
  "Invalidates the new secret at once; the previous one stays valid. With only UPDATE_OWN: as for updateApiKey."
  rollBackApiKeyRotation(
    "The id of the key."
    id: ID!
  ): ApiKey @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
  "Deletes keys and all keys that they created. Unknown ids are ignored. With only DELETE_OWN: as for updateApiKey."
  deleteApiKeys(
    "The ids of the keys, at most ${MAX_PAGE_SIZE}."
    ids: [ID!]! @cost(weight: 20)
  ): DeletedApiKeys @requires(resource: API_KEY, action: DELETE_OWN) @cost(weight: 250)
  """
  Undoes what a key did, in one transaction: it and all keys beneath it are disabled, secrets end that it issued to
  others, and what it widened or enabled is taken back. Who may update and delete the key, and the others, may do so; of
  a key that is gone, who may update and delete any. No key gets more by it than it has.
  """
  containKey(
    "Which key."
    input: ContainKeyInput!
  ): ContainedKey @requires(resource: API_KEY, action: UPDATE_OWN) @cost(weight: 250)
}
`;
}

function describeResource(name: string): string {
  return `The resource ${name.toLowerCase().replaceAll('_', ' ').replaceAll(/ +/g, ' ')}.`;
}

function describeAction(name: string): string {
  const [verb = '', scope] = name.toLowerCase().split('_');
  return `May ${verb} ${scope === 'any' ? 'any object' : "the key's own objects"}.`;
}
