import { OTHER_CORES } from './processes.ts';
import { BY_PERMISSION, BY_ROUTES, CHECK, FAILURES, LIST, ME, SHAPES, type Workload } from './workloads.ts';

/** A server to measure. */
export interface Row {
  title: string;
  /** Its file in `servers/`, and its argument. */
  server: string;
  mode?: string;
  workloads: readonly Workload[];
  /** True if it accepts requests without a key. */
  isOpen?: boolean;
  /** Its cores, for taskset. Default: the first. */
  cores?: string;
}

export const SVC_API: Row = { title: '**svc-api**', server: 'svc-api', workloads: SHAPES };
export const ON_POSTGRES: Row = { ...SVC_API, title: '**svc-api** on PostgreSQL', mode: 'postgres' };
/** The baseline. */
export const NAIVE: Row = { title: '@hono/graphql-server, naive check', server: 'naive', workloads: SHAPES };
export const MERCURIUS: Row = {
  title: 'mercurius with jit, naive check',
  server: 'mercurius',
  mode: 'jit',
  workloads: SHAPES,
};
export const BARE: Row = { title: 'bare node:http, naive check', server: 'bare', mode: 'keyed', workloads: SHAPES };

/** Servers for the requests that fail. */
export const FAILURE_ROWS = [SVC_API, ON_POSTGRES, NAIVE, MERCURIUS].map((row): Row => ({
  ...row,
  workloads: FAILURES,
}));

/** The requests for comparing all servers. */
export const COMMON: readonly Workload[] = [ME, LIST];

export const GRAPHQL_ROWS: readonly Row[] = [
  SVC_API,
  ON_POSTGRES,
  NAIVE,
  { title: 'graphql-yoga, naive check', server: 'yoga', workloads: COMMON },
  { title: 'Apollo Server, naive check', server: 'apollo', workloads: COMMON },
  { title: 'mercurius, naive check', server: 'mercurius', workloads: COMMON },
  MERCURIUS,
  BARE,
  { title: 'bare node:http, open', server: 'bare', mode: 'open', workloads: COMMON, isOpen: true },
];

export const CHECKS: readonly Workload[] = [CHECK];

const BEARER_AUTH: Row = { title: '**bearerAuth of svc-api**, in Hono', server: 'bearer-auth', workloads: CHECKS };

/** The baseline for ours. */
export const BETTER_AUTH: Row = {
  title: 'verifyApiKey of better-auth, as it comes, in Hono',
  server: 'better-auth',
  mode: 'default',
  workloads: CHECKS,
};

export const CONSTANT_ROWS: readonly Row[] = [
  { title: '**keys.check of svc-api**, in node:http', server: 'check', workloads: CHECKS },
  BEARER_AUTH,
  BETTER_AUTH,
  { title: 'the same in WAL mode, without rate limit', server: 'better-auth', mode: 'sqlite', workloads: CHECKS },
  { title: 'the same with the keys in a Map, not on disk', server: 'better-auth', mode: 'memory', workloads: CHECKS },
];

/** The cost of Hono alone. */
export const EMPTY_MIDDLEWARE: Row = {
  title: 'an empty middleware, in Hono',
  server: 'bearer-auth',
  mode: 'empty',
  workloads: CHECKS,
  isOpen: true,
};

export const MIDDLEWARE_ROWS: readonly Row[] = [BEARER_AUTH, EMPTY_MIDDLEWARE];

/** The baseline for limits. */
export const UNLIMITED: Row = { ...BEARER_AUTH, title: '**bearerAuth of svc-api**, keys without limits' };
export const LIMITS_ROWS: readonly Row[] = [
  UNLIMITED,
  { ...BEARER_AUTH, title: '**bearerAuth of svc-api**, keys with a limit', mode: '600000/m' },
];

export const WORKERS: readonly Workload[] = [ME];

/** The baseline for several workers. */
export const ONE_WORKER: Row = {
  title: '`serve --workers 1`',
  server: 'serve',
  mode: '1',
  workloads: WORKERS,
  cores: OTHER_CORES,
};

export const WORKERS_ROWS: readonly Row[] = [ONE_WORKER, { ...ONE_WORKER, title: '`serve --workers 2`', mode: '2' }];

/** The baseline for more routes. */
export const FEW_ROUTES: Row = {
  title: '**forward-auth of svc-api**, 10 routes',
  server: 'forward-auth',
  mode: '10',
  workloads: [BY_ROUTES, BY_PERMISSION],
};
export const FORWARD_AUTH_ROWS: readonly Row[] = [
  FEW_ROUTES,
  { ...FEW_ROUTES, title: '**forward-auth of svc-api**, 10,000 routes', mode: '10000' },
];

const WATCHED: Row = { title: '`serve`', server: 'telemetry', mode: '', workloads: [ME] };
/** Telemetry settings: flags, and OpenTelemetry's sampler. The first row has none. */
export const TELEMETRY_ROWS: readonly Row[] = [
  WATCHED,
  { ...WATCHED, title: 'metrics', mode: '--metrics-port 0' },
  { ...WATCHED, title: 'request log', mode: '--request-log' },
  { ...WATCHED, title: 'traces, none sampled', mode: ';always_off' },
  { ...WATCHED, title: 'traces, 1 % sampled', mode: ';traceidratio;0.01' },
  { ...WATCHED, title: 'traces, all sampled', mode: ';always_on' },
  {
    ...WATCHED,
    title: 'metrics, request log and traces, 1 % sampled',
    mode: '--metrics-port 0 --request-log;traceidratio;0.01',
  },
];
