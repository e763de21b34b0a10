import { CONSTANT, firstItems, RESIZED_ID } from './items.ts';
import { NUMBER } from './placeholders.ts';
import type { BenchKey } from './stores.ts';

/** A request to a server. */
export interface Workload {
  title: string;
  /** The body of the POST request; without one, it is a GET. */
  body?: GraphQLBody;
  /** The body of the POST request to a server without GraphQL. */
  message?: object;
  /** The path of the request. Default: `/`, with a body `/graphql`. */
  target?: string;
  /** Additional headers. */
  headers?: readonly string[];
  /** True to send the headers of a browser with Apollo Client behind a proxy. */
  hasLongHead?: boolean;
  /** The bearer token. Default: a key's secret. */
  token?: string;
  /** The expected statuses. Default: 200. */
  statuses?: readonly number[];
  /**
   * The expected response: for errors, only paths and codes; without a body, the reported caller. If undefined, only
   * the status is checked.
   * @param number the number sent for NUMBER
   */
  expected?: (key: BenchKey, number: string) => unknown;
}

interface GraphQLBody {
  query: string;
  operationName?: string;
  variables?: Readonly<Record<string, unknown>>;
  extensions?: object;
}

export const ME: Workload = {
  title: '`me`',
  body: { query: '{ me { id name roles } }' },
  expected: (key) => ({ data: { me: callerOf(key) } }),
};

const LIST_QUERY = 'query ($n: Int!) { items(first: $n) { id name size ok } }';

export const LIST: Workload = {
  title: 'a list of 20 by a variable',
  body: { query: LIST_QUERY, variables: { n: 20 } },
  expected: () => ({ data: { items: firstItems(20) } }),
};

const APOLLO: Workload = {
  title: 'the list as Apollo Client sends it',
  body: {
    operationName: 'Items',
    variables: { n: 20 },
    extensions: { clientLibrary: { name: '@apollo/client', version: '4.1.0' } },
    query: 'query Items($n: Int!) {\n  items(first: $n) {\n    id\n    name\n    size\n    ok\n    __typename\n  }\n}',
  },
  hasLongHead: true,
  expected: () => ({ data: { items: firstItems(20).map((item) => ({ ...item, __typename: 'Item' })) } }),
};

export const INCLUDE: Workload = {
  title: 'the list with one `@include(if: $t)`',
  body: {
    query: 'query ($n: Int!, $t: Boolean!) { items(first: $n) { id name size ok @include(if: $t) } }',
    variables: { n: 20, t: true },
  },
  expected: () => ({ data: { items: firstItems(20) } }),
};

const MUTATION: Workload = {
  title: 'a mutation',
  body: {
    query: 'mutation ($id: ID!, $size: Int!) { resizeItem(id: $id, size: $size) { id size } }',
    variables: { id: RESIZED_ID, size: Number(NUMBER) },
  },
  expected: (_, number) => ({ data: { resizeItem: { id: RESIZED_ID, size: Number(number) } } }),
};

const REFUSED: Workload = {
  title: 'a refused field beside `me`',
  body: { query: '{ me { id name roles } drafts { id name } }' },
  expected: (key) => ({
    data: { me: callerOf(key), drafts: null },
    errors: [{ path: ['drafts'], code: 'FORBIDDEN' }],
  }),
};

const UNSEEN: Workload = {
  title: 'a document never seen before',
  body: { query: `{ n${NUMBER}: me { id name roles } }` },
  expected: (key, number) => ({ data: { [`n${number}`]: callerOf(key) } }),
};

const LONG_LIST: Workload = {
  title: 'a list of 40 KB',
  body: { query: LIST_QUERY, variables: { n: 600 } },
  expected: () => ({ data: { items: firstItems(600) } }),
};

/** The shapes of requests that real clients send. */
export const SHAPES: readonly Workload[] = [ME, LIST, APOLLO, INCLUDE, MUTATION, REFUSED, UNSEEN, LONG_LIST];

/**
 * Requests that fail. Servers use different statuses for an invalid document. These come last, since svc-api throttles
 * clients that have sent too many invalid tokens.
 */
export const FAILURES: readonly Workload[] = [
  { title: 'a field that is not there', body: { query: '{ me { id nothing } }' }, statuses: [200, 400] },
  { title: 'a syntax error', body: { query: '{ me { id name roles }' }, statuses: [200, 400] },
  {
    title: 'a token that is no key, after many of them',
    body: ME.body!,
    token: `svc_${NUMBER}zz_${'z'.repeat(49)}`,
    statuses: [401, 429],
  },
];

/** A request to a server without GraphQL. */
export const CHECK: Workload = { title: 'constant', expected: () => CONSTANT };

/** A request to one of a hundred services behind a guard, and a call of one of their tools. */
export const SERVICE: Workload = { ...CHECK, title: 'one of 100 services', target: '/service42/items' };
export const CALL: Workload = {
  title: 'a call of a tool',
  target: '/mcp',
  message: { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'read_file', arguments: { path: 'a.txt' } } },
  expected: () => CONSTANT,
};

/** The request that nginx sends before each of a browser's requests. */
const ASKED: Omit<Workload, 'title'> = {
  headers: [
    'X-Original-Method: GET',
    `X-Original-URI: /api/service7/items/${NUMBER}?page=2`,
    'X-Forwarded-Host: host7.example.org',
  ],
  hasLongHead: true,
  expected: ({ id, name, roles }) => ({ id, name: encodeURIComponent(name), roles, permission: 'ITEM:UPDATE_ANY' }),
};
export const BY_ROUTES: Workload = { title: 'by routes', target: '/auth/nginx', ...ASKED };
export const BY_PERMISSION: Workload = {
  title: 'by `?permission=`',
  target: '/auth/nginx?permission=ITEM:UPDATE_ANY',
  ...ASKED,
};

function callerOf({ id, name, roles }: BenchKey): object {
  return { id, name, roles };
}
