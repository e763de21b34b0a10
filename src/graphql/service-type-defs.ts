/** The schema for what the service allows, and how it is. */
export const SERVICE_TYPE_DEFS = `
extend type Query {
  "What the service demands of all keys."
  policy: Policy @requires(resource: CONFIG, action: READ_ANY)
  "How much keys, addresses and requests may take."
  limits: ServiceLimits @requires(resource: CONFIG, action: READ_ANY)
  "How the service and its key store are. If the store does not answer, that is an answer, too."
  health: Health @requires(resource: INFO, action: READ_ANY) @cost(weight: 100)
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

"""How much there may be."""
type ServiceLimits {
  "How many requests a key without limits of its own may make, such as 100/m. Empty for any number."
  defaultKeyLimits: [String!]! @listSize(assumedSize: 2)
  "How many requests from one address may have keys that are not valid, such as 20/m; null for any number."
  failedCredentials: String
  "What one GraphQL request may take."
  request: RequestLimits!
}

"""What one GraphQL request may take. All are integers; null stands for any number."""
type RequestLimits {
  "What it may cost, by @cost and @listSize."
  cost: Float
  "The fields and list items that it resolves."
  nodes: Float
  "The characters of its answer."
  characters: Float
  "How long it runs, in milliseconds."
  timeMs: Float
  "The errors in its answer."
  errors: Int!
  "The items that a page of a list has."
  pageSize: Int!
  "The tokens of its document."
  tokens: Int!
  "The characters of a name in its document."
  nameLength: Int!
  "The levels of brackets in its document."
  nesting: Int!
  "The levels of its fields."
  depth: Int!
  "Its fields, with fragments expanded."
  fields: Int!
  "Its aliases, with fragments expanded."
  aliases: Int!
  "Its directives, with fragments expanded."
  directives: Int!
  "The fragments in its document."
  fragments: Int!
  "The levels of brackets, with fragments expanded."
  expandedNesting: Int!
  "The pairs of fields with one name in one place; five pairs without arguments count as one."
  repeatedPairs: Int!
}

"""The database that a key store is in."""
enum StoreKind {
  "A file."
  SQLITE
  "A database of PostgreSQL, or of what speaks as it does."
  POSTGRESQL
}

"""How the service and its key store are."""
type Health {
  "The database that the key store is in."
  storeKind: StoreKind!
  "Whether the key store answers, within 2 seconds."
  storeAnswers: Boolean!
  "In how many milliseconds it answered; null if it does not."
  answeredInMs: Float
  "Whether changes of keys by other processes are heard. If not, every request asks the store, and takes longer."
  hearsChanges: Boolean!
  "Whether searches of keys go by an index; null if the store does not tell."
  searchIndex: Boolean
  "By how many seconds the clock of the machine is behind the time that counts, as the store has seen later ones; or 0."
  clockBehind: Float!
}
`;
