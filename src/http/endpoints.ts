/** The parts of the service that requests go to, as logs, metrics and traces name them. */
export const ENDPOINTS = [
  'graphql',
  'introspect',
  'consent',
  'console',
  'sign-in',
  'health',
  'home',
  'forward-auth',
  'guard',
  'other',
] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

const BY_PATH: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  ['/graphql', 'graphql'],
  ['/introspect', 'introspect'],
  ['/healthz', 'health'],
  ['/readyz', 'health'],
  ['/', 'home'],
  ['/device', 'consent'],
  ['/console', 'console'],
  ['/.well-known/oauth-authorization-server', 'consent'],
]);
const BY_START: readonly (readonly [start: string, endpoint: Endpoint])[] = [
  ['/auth/', 'forward-auth'],
  ['/oauth/', 'consent'],
  ['/console/', 'console'],
  ['/.svc-api/', 'sign-in'],
];

/** The endpoint of a URL, from a fixed set, so that clients cannot invent names. */
export function endpointOf(url = ''): Endpoint {
  const end = url.indexOf('?');
  const path = end === -1 ? url : url.slice(0, end);
  return BY_PATH.get(path) ?? BY_START.find(([start]) => path.startsWith(start))?.[1] ?? 'other';
}
