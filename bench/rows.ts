import type { Workload } from './workloads.ts';

/** One server to measure. */
export interface Row {
  title: string;
  /** Its file in `servers/`, and its argument. */
  server: string;
  mode?: string;
  workloads: readonly Workload[];
  /** Whether it accepts requests without a key. */
  isOpen?: boolean;
}

const GRAPHQL: readonly Workload[] = ['me', 'items'];
const CONSTANT: readonly Workload[] = ['constant'];

export const SVC_API: Row = { title: '**svc-api**', server: 'svc-api', workloads: GRAPHQL };
/** The row that all others are compared with. */
export const NAIVE: Row = { title: '@hono/graphql-server, naive check', server: 'naive', workloads: GRAPHQL };

export const GRAPHQL_ROWS: readonly Row[] = [
  SVC_API,
  { ...SVC_API, title: '**svc-api** on PostgreSQL', mode: 'postgres' },
  NAIVE,
  { title: 'graphql-yoga, naive check', server: 'yoga', workloads: GRAPHQL },
  { title: 'Apollo Server, naive check', server: 'apollo', workloads: GRAPHQL },
  { title: 'mercurius, naive check', server: 'mercurius', workloads: GRAPHQL },
  { title: 'mercurius with jit, naive check', server: 'mercurius', mode: 'jit', workloads: GRAPHQL },
  { title: 'bare node:http, naive check', server: 'bare', mode: 'keyed', workloads: GRAPHQL },
  { title: 'bare node:http, open', server: 'bare', mode: 'open', workloads: GRAPHQL, isOpen: true },
];

/** The row that ours is compared with. */
export const BETTER_AUTH: Row = {
  title: 'verifyApiKey of better-auth, as it comes, in Hono',
  server: 'better-auth',
  mode: 'default',
  workloads: CONSTANT,
};

export const CONSTANT_ROWS: readonly Row[] = [
  { title: '**authenticate of svc-api**, in node:http', server: 'authenticate', workloads: CONSTANT },
  { title: '**bearerAuth of svc-api**, in Hono', server: 'bearer-auth', workloads: CONSTANT },
  BETTER_AUTH,
  { title: 'the same in WAL mode, without rate limit', server: 'better-auth', mode: 'sqlite', workloads: CONSTANT },
  { title: 'the same with the keys in a Map, not on disk', server: 'better-auth', mode: 'memory', workloads: CONSTANT },
];
