import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../keys/page.ts';

/** The schema for what applications ask for. */
export const CONSENT_TYPE_DEFS = `
extend type Query {
  "What applications ask for, and have not got yet, oldest first."
  consentRequests(
    "The maximum number of requests, up to ${MAX_PAGE_SIZE}."
    first: Int = ${DEFAULT_PAGE_SIZE}
  ): [ConsentRequest!]
    @requires(resource: API_KEY, action: CREATE_ANY)
    @cost(weight: 3)
    @listSize(assumedSize: ${MAX_PAGE_SIZE}, slicingArguments: ["first"])
  "What one application asks for. A key has only so many tries of codes. By requestId, with CREATE_ANY alone."
  consentRequest(
    "The code that the application shows, such as WDJB-MJHT."
    userCode: String
    "Which request."
    requestId: ID
  ): ConsentRequest @requires(resource: API_KEY, action: CREATE_OWN) @cost(weight: 10)
}

extend type Mutation {
  """
  Agrees to what an application asks for, or to a part of it. The application gets a key that the caller has created, by
  the rules of createApiKey, which count again when it fetches that key. To agree to the same again changes nothing.
  """
  approveConsentRequest(
    "What is granted."
    input: ApproveConsentRequestInput!
  ): ConsentRequest @requires(resource: API_KEY, action: CREATE_OWN) @cost(weight: 250)
  "Refuses what an application asks for, also again. By requestId, with CREATE_ANY alone."
  denyConsentRequest(
    "The code that the application shows."
    userCode: String
    "Which request."
    requestId: ID
  ): ConsentRequest @requires(resource: API_KEY, action: CREATE_OWN) @cost(weight: 250)
}

"""How an application gets its key."""
enum ConsentFlow {
  "It shows a code to a person (RFC 8628)."
  DEVICE
  "It sends a person to a page, which sends them back (RFC 6749)."
  CODE
}

"""What became of a request."""
enum ConsentStatus {
  "Nobody has decided yet."
  PENDING
  "Somebody has agreed, and the application has not fetched its key yet."
  APPROVED
  "Somebody has refused."
  DENIED
  "The application has fetched its key."
  USED
}

"""What an application asks for."""
type ConsentRequest {
  "Which one it is, while it lasts: a UUID."
  requestId: ID!
  "How the application gets its key."
  flow: ConsentFlow!
  "What the application calls itself."
  clientId: String!
  "The name of the application, as it is registered."
  clientName: String!
  "The roles that it asks for."
  roles: [Role!]! @listSize(assumedSize: 2)
  "The permissions that it asks for besides the roles."
  permissions: [Permission!]! @listSize(assumedSize: 5)
  "All that it asks for in its order, roles first, as text, and also what can be granted no longer."
  grants: [String!]! @listSize(assumedSize: 3)
  "After which time it wants the key to end, such as 30d."
  keyExpiresIn: String
  "Where it asks from."
  address: String
  "When it asked."
  createdAt: DateTime!
  "Until when somebody can decide, and the application can fetch its key."
  expiresAt: DateTime!
  "What became of it."
  status: ConsentStatus!
  "The name of the key that it gets; null until somebody has agreed."
  keyName: String
  "What that key is granted, as grants."
  keyGrants: [String!] @listSize(assumedSize: 3)
  "When that key ends, if somebody has said so; at the latest with the key of whoever agreed."
  keyExpiresAt: DateTime
}

"""What is granted to an application."""
input ApproveConsentRequestInput {
  "The code that the application shows."
  userCode: String!
  "The roles, of those that it asks for. Without roles and permissions: all that it asks for."
  roles: [Role!]
  "The permissions, of what it asks for."
  permissions: [PermissionInput!]
  "When the key ends. Without it: when the application asks for, at the latest with the caller."
  expiresAt: DateTime
  "After which time the key ends, in place of expiresAt: a number with s, m, h, d or w, such as 30d."
  expiresIn: String
}
`;
