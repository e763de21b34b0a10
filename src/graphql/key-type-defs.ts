import { KEPT_DAYS } from '../keys/usage/periods.ts';

/** The types of keys, of their pages, and of what can be granted, in SDL. */
export const KEY_TYPE_DEFS = `
"""An API key, without its secret."""
type ApiKey implements Node {
  "A UUID."
  id: ID!
  "The name, unique among all keys."
  name: String!
  "What it is for."
  description: String
  "The roles that were granted."
  roles: [Role!]! @listSize(assumedSize: 2)
  "The permissions that were granted besides the roles."
  permissions: [Permission!]! @listSize(assumedSize: 3)
  "Roles and permissions that were granted and are declared no longer, or only elsewhere. They allow nothing here."
  unknownGrants: [String!]! @listSize(assumedSize: 2)
  "All grants in their order, roles first, as text: roles, permissions and unknownGrants."
  grants: [String!]! @listSize(assumedSize: 3)
  "How many requests it may make: a number and s, m, h, d or month, such as 100/m. Empty if it has no own limits."
  limits: [String!]! @listSize(assumedSize: 2)
  "The networks that it may be used from, such as 10.0.0.0/8; null for anywhere."
  allowFrom: [String!] @listSize(assumedSize: 3)
  "Whether it may do something now, and why."
  access(
    "The permission, as RESOURCE:ACTION."
    permission: String!
  ): ApiKeyAccess! @cost(weight: 20)
  "Everything that the roles and permissions allow together, as far as the keys above it may do so, too."
  effectivePermissions: [Permission!]! @listSize(assumedSize: 20)
  "What the keys above it take away from it, the nearest first: the key that created it, that one's creator, and so on."
  limitedBy: [ApiKeyLimit!]! @cost(weight: 5) @listSize(assumedSize: 2)
  "The keys that it created, those that these created, and so on: whoever deletes it deletes them, too."
  descendants(
    "The maximum number of keys, from 1 to 500."
    first: Int! = 50
  ): ApiKeyDescendants @cost(weight: 20) @listSize(assumedSize: 500, slicingArguments: ["first"])
  "What it did to others, or was done with secrets that it issued, and is in force, oldest first."
  issued: [IssuedChange!]! @cost(weight: 40) @listSize(assumedSize: 5)
  "The public part of the secret, as svc_<id>_…"
  prefix: String!
  "When it was created."
  createdAt: DateTime!
  "The id of the key that created it; null if the command line did."
  createdBy: ID
  "Whether it is accepted."
  status: ApiKeyStatus!
  "When it expires; null if it never does."
  expiresAt: DateTime
  "When it was disabled; null while it is not. A key above it may be."
  disabledAt: DateTime
  "Whether the policy disabled it, since it was not used."
  disabledByPolicy: Boolean!
  "Whether an apply created it."
  managed: Boolean!
  "How often it was accepted, an integer. Like the other fields about its use, it lags by a few seconds."
  uses: Float!
  "When it was last accepted; null if never."
  lastUsedAt: DateTime
  """
  How its requests ended, by hours or days in UTC, the oldest first; those without a request are left out. Hours are
  kept for ${KEPT_DAYS.HOUR} days, days for ${KEPT_DAYS.DAY}.
  """
  usage(
    "From the hour or day on that this is in. Default: 24 hours or 30 days before the end."
    from: DateTime @cost(weight: 900)
    "Up to the hour or day that this is in, unless it starts then. Default: now."
    to: DateTime
    "By what to count."
    by: UsagePeriod = HOUR @cost(weight: 150)
  ): [ApiKeyUsage!] @cost(weight: 20) @listSize(assumedSize: 24)
  "The permissions that it has used. Those of a role that it has granted to another key are not used by that."
  usedPermissions: [Permission!]! @cost(weight: 5)
  """
  The roles that it needs, as it has granted them to other keys: without those that another one of them includes.
  """
  suggestedRoles: [Role!]! @cost(weight: 5) @listSize(assumedSize: 2)
  "The smallest set of permissions that, with \`suggestedRoles\`, allows everything it has used."
  suggestedPermissions: [Permission!]! @cost(weight: 5)
  "The permissions that it holds and has never used."
  unusedPermissions: [Permission!]! @cost(weight: 5) @listSize(assumedSize: 20)
  "The permissions that it holds and would lose with \`suggestedRoles\` and \`suggestedPermissions\`."
  excessPermissions: [Permission!]! @cost(weight: 5) @listSize(assumedSize: 20)
  "The rotation in progress; null if it has only one secret that works."
  rotation: ApiKeyRotation
}

"""Keys beneath a key."""
type ApiKeyDescendants {
  "How many were found, up to the maximum."
  count: Int!
  "Whether there are more."
  hasMore: Boolean!
  "When the one of those that were found which was used last was accepted; null if none ever was."
  lastUsedAt: DateTime
  "Those of them that the requesting key may read, the nearest first."
  keys: [ApiKey!]!
}

"""By what use is counted, in UTC."""
enum UsagePeriod {
  "By the hour."
  HOUR
  "By the day."
  DAY
}

"""How the requests of a key ended in an hour or on a day. Each is counted once; counts are integers."""
type ApiKeyUsage {
  "When the hour or day began."
  start: DateTime!
  "Requests that were let in, and lacked no permission."
  accepted: Float!
  "Requests that lacked a permission, be it for one field, or came from an address that the key may not be used from."
  forbidden: Float!
  "Requests over a limit of the key, or of a key above it."
  limited: Float!
  "Requests with a secret that was not accepted: of a disabled or expired key, or one that was rotated out."
  refused: Float!
}

"""A rotation in progress: the key has two secrets that work."""
type ApiKeyRotation {
  "When the key got its new secret."
  startedAt: DateTime!
  "The public part of the previous secret."
  previousPrefix: String!
  "When the previous secret expires; null until the new one is first used."
  previousEndsAt: DateTime
  "When the previous secret was last used since the rotation; null if it was not."
  previousLastUsedAt: DateTime
}

"""Whether a key may do something, and why."""
type ApiKeyAccess {
  "Whether it may."
  allowed: Boolean!
  "The permission that was asked for."
  permission: String!
  "The key's own roles and permissions that say so."
  grantedBy: [String!]!
  "Its status, which counts the keys above it."
  status: ApiKeyStatus!
  "The id of the nearest key above it that forbids it; null if none does."
  deniedById: ID
  "The name of that key; null if the requesting key may not read it."
  deniedByName: String
}

"""When the grace period of the previous secret begins."""
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
  actions: [AuthAction!]! @listSize(assumedSize: 4)
}

"""Actions to allow on a resource."""
input PermissionInput {
  "The resource."
  resource: Resource!
  "The actions."
  actions: [AuthAction!]!
}

"""A page of keys (Relay cursor connections)."""
type ApiKeyConnection {
  "The keys with their cursors."
  edges: [ApiKeyEdge!]!
  "The position of the page in the list."
  pageInfo: PageInfo!
}

"""A key in a page."""
type ApiKeyEdge {
  "The key."
  node: ApiKey!
  "The cursor of this key."
  cursor: String!
}

"""The position of a page in its list (Relay cursor connections)."""
type PageInfo {
  "Whether more items follow."
  hasNextPage: Boolean!
  "Always false: lists are only paged forwards."
  hasPreviousPage: Boolean!
  "The cursor of the first item."
  startCursor: String
  "The cursor of the last item: pass it as 'after' to get the next page."
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
  "How long it has been running, in seconds."
  uptime: Float!
  "What it runs on, such as Node.js v24.15.0."
  runtime: String!
  "The operating system and processor, such as linux x64."
  platform: String!
}

"""Everything that can be granted."""
type PermissionCatalog {
  "All roles, with the permissions that they include."
  roles: [RoleGrants!]!
  "All resources."
  resources: [Resource!]!
  "All actions."
  actions: [AuthAction!]!
}

"""A role with the permissions that it includes."""
type RoleGrants {
  "The role."
  role: Role!
  "What the role is for."
  description: String!
  "The permissions that it includes."
  permissions: [Permission!]!
}

"""What a key above another one takes away from it."""
type ApiKeyLimit {
  "The id of the key above."
  keyId: ID!
  "Its name; null if the requesting key may not read it."
  name: String
  "Its own status. Unless it is ACTIVE, the key beneath is refused."
  status: ApiKeyStatus!
  "Its expiry, if that comes before the other's; otherwise null."
  expiresAt: DateTime
  "The permissions that the key beneath lacks because of it."
  permissions: [Permission!]!
  "Its own limits, which the requests of the key beneath count against, too."
  limits: [String!]!
  "The networks that it, and so the key beneath, may be used from; null for anywhere."
  allowFrom: [String!]
}
`;
