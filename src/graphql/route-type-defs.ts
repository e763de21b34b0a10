import { MAX_PAGE_SIZE } from '../keys/page.ts';

/** How many routes a page has where nothing is asked for. */
export const ROUTES_PAGE_SIZE = 100;
/** The most characters of a URL, as of the query in that of a GET request, and of a method. */
export const MAX_URL_LENGTH = 8192;
export const MAX_METHOD_LENGTH = 100;

/** The schema for the routes, which say what requests to guarded services require. */
export const ROUTE_TYPE_DEFS = `
extend type Query {
  "The routes of svc-api.yaml, in their order."
  routes(
    "The maximum number of routes, up to ${MAX_PAGE_SIZE}."
    first: Int = ${ROUTES_PAGE_SIZE}
    "The endCursor of the previous page. It counts routes: begin anew once the configuration has changed."
    after: String
  ): RouteConnection
    @requires(resource: CONFIG, action: READ_ANY)
    @cost(weight: 3)
    @listSize(assumedSize: ${MAX_PAGE_SIZE}, slicingArguments: ["first"])
  """
  Which route decides about a request, why others do not, and what is required. Nothing is sent. With a key, which also
  requires API_KEY:READ_ANY, or READ_OWN for its own: whether that may pass. Limits, and the addresses that a key may be
  used from, are not looked at.
  """
  explainRequest(
    "The method, in capital letters."
    method: String = "GET"
    "The URL as the client asks for it, such as https://example.org/path: at most ${MAX_URL_LENGTH} characters."
    url: String!
    "Whether to explain the CORS preflight that a browser sends before it."
    preflight: Boolean = false
    "The id of the key that the request has."
    keyId: ID
    "The name of that key, instead of its id."
    keyName: String
  ): RequestExplanation @requires(resource: CONFIG, action: READ_ANY) @cost(weight: 1200)
}

"""Whom a route lets pass."""
enum RouteAllow {
  "Everybody, without a key."
  OPEN
  "Any valid key."
  KEY
  "A key with all of its permissions."
  ALL
  "A key with any of its permissions."
  ANY
}

"""A route: what one kind of request requires."""
type Route {
  "Its number, counted from 1."
  number: Int!
  "Its line in svc-api.yaml, if it is from there."
  line: Int
  "A host, *.example.org for one or more labels before it, or * for every host."
  host: String!
  "Segments: text, * for exactly one, and ** at the end for the rest, which may be empty."
  path: String!
  "Its methods; null for all."
  methods: [String!] @listSize(assumedSize: 3)
  "Whom it lets pass."
  allow: RouteAllow!
  "The permissions of which a key needs all, or any, as RESOURCE:ACTION; empty for OPEN and KEY."
  permissions: [String!]! @listSize(assumedSize: 2)
  "What it requires, in words: no key, a valid key, or the permissions."
  requires: String!
  "Whether CORS preflights pass without a key."
  preflightOpen: Boolean!
  "The numbers of the routes that decide in its place for each of its requests; empty if it ever decides."
  hiddenBy: [Int!]! @cost(weight: 2) @listSize(assumedSize: 1)
}

"""A page of routes (Relay cursor connections)."""
type RouteConnection {
  "Whether there is a svc-api.yaml."
  configured: Boolean!
  "How many routes there are in all. What none of them is for, is forbidden."
  total: Int!
  "The routes with their cursors."
  edges: [RouteEdge!]!
  "The position of the page in the list."
  pageInfo: PageInfo!
}

"""A route in a page."""
type RouteEdge {
  "The route."
  node: Route!
  "The cursor of this route."
  cursor: String!
}

"""What becomes of a request."""
enum RequestOutcome {
  "It may pass."
  ALLOWED
  "It requires a key, and has none that is accepted: 401."
  REFUSED
  "Its key lacks permissions, or no key would help: 403."
  FORBIDDEN
}

"""A request in the form in which it is compared with routes."""
type CanonicalRequest {
  "The method."
  method: String!
  "The host, without its port."
  host: String!
  "The path, without the query."
  path: String!
}

"""Why a request is decided as it is."""
type RequestExplanation {
  "What becomes of it."
  outcome: RequestOutcome!
  "Why, in words."
  reason: String!
  "The request as it was compared; null if it is forbidden for its form."
  request: CanonicalRequest
  "The method that was looked up in place of OPTIONS, for a CORS preflight that passes."
  preflightFor: String
  "The route that decides; null if none does."
  route: Route
  "The permissions of the key that were needed, as RESOURCE:ACTION."
  used: [String!]! @listSize(assumedSize: 2)
  "The permissions that the key lacks. Where the route allows ANY, one of them would do."
  missing: [String!]! @listSize(assumedSize: 2)
  "The route from which the path differs only by case, for which the request is forbidden."
  otherCaseOf: Route
  "The routes that match, too, at most 20, most specific first."
  after: [LaterRoute!]! @listSize(assumedSize: 5)
  "The routes for the host and the path that are for other methods, at most 20."
  otherMethods: [Route!]! @listSize(assumedSize: 5)
  "The key that the request has, if one was named."
  apiKey: ApiKey
}

"""A route that does not decide, as another one comes before it."""
type LaterRoute {
  "The route."
  route: Route!
  "Why the one before it is more specific."
  because: String!
}
`;
