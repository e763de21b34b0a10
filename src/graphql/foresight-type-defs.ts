/** The schema for what a key would be let do, and for what is demanded of all keys. */
export const FORESIGHT_TYPE_DEFS = `
extend type Query {
  "What the service demands of all keys."
  policy: Policy @requires(resource: CONFIG, action: READ_ANY)
  "What the requesting key may give to a key that it creates, by what it holds and by the policy."
  grantable: Grantable @requires(resource: API_KEY, action: CREATE_OWN) @cost(weight: 20)
}

extend type ApiKey {
  "What the requesting key would be let do to it now, by the rules that decide when it does so."
  possibleChanges: [PossibleChange!]! @cost(weight: 40) @listSize(assumedSize: 10)
  "What the requesting key may give to it, beside what it has."
  grantable: Grantable! @cost(weight: 40)
}

"""What can be done to a key."""
enum ApiKeyChange {
  "To change it by updateApiKey. More access takes more: see grantable."
  UPDATE
  "To enable it; of a key that is not disabled, once it is."
  ENABLE
  "To disable it."
  DISABLE
  "To give it another secret."
  ROTATE
  "To give it another secret, and disable the keys that it has created."
  ROTATE_AND_DISABLE_CREATED
  "To begin the grace period of its previous secret."
  ACTIVATE_ROTATION
  "To invalidate its previous secret."
  FINISH_ROTATION
  "To invalidate its new secret."
  ROLL_BACK_ROTATION
  "To delete it, and the keys beneath it."
  DELETE
  "To disable it and the keys beneath it, and to undo what it did to others."
  CONTAIN
}

"""Whether something would be done to a key now."""
type PossibleChange {
  "What."
  change: ApiKeyChange!
  "Whether it would be done."
  allowed: Boolean!
  "Why not, in a sentence; null if it would be done."
  reason: String
  "The code of the error that would be the answer; null if it would be done."
  code: String
}

"""What the requesting key may give to another one."""
type Grantable {
  "Why it may grant nothing, in a sentence; null if it may."
  reason: String
  "The roles that it may grant."
  roles: [RoleGrants!]! @listSize(assumedSize: 4)
  "The permissions that it may grant."
  permissions: [Permission!]! @listSize(assumedSize: 30)
  "Roles and permissions that it holds, and that the policy lets no key grant."
  withheld: [String!]! @listSize(assumedSize: 20)
  "When the other key may end."
  ends: EndBounds!
  "How many more live keys it may create by the policy, an integer; null for any number."
  creatable: Float
}

"""When a key may end."""
type EndBounds {
  "Why its end cannot be set, in a sentence; null if it can."
  reason: String
  "The latest end that can be set; null if there is none."
  latest: DateTime
  "Whether it has to end."
  required: Boolean!
}

"""What is demanded of all keys. What is null demands nothing. Times are a number with s, m, h, d or w, such as 90d."""
type Policy {
  "How far ahead the end of a key may lie. A key without an end lives too long as well."
  maxLifetime: String
  "Whether every key has to end."
  requireExpiry: Boolean!
  "The roles and permissions that keys may grant. A role stands for those that it includes, and for its permissions."
  grantableByKeys: [String!]
  "How many live keys a key may have created, an integer."
  maxKeysPerCreator: Float
  "After how long without use a key is disabled."
  disableUnused: String
}
`;
