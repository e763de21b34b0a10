import assert from 'node:assert/strict';
import { PermissionSet } from '../src/keys/permissions/permission-set.ts';
import { decide } from '../src/features/routes/decide.ts';
import type { RequestParts } from '../src/features/routes/request.ts';
import { createRouter, type Route, type Router } from '../src/features/routes/router.ts';
import { figure, median, table } from './figures.ts';

/** The compared numbers of routes; the first one is the baseline. */
export const COUNTS = [10, 1000, 10_000];
const DECISIONS = 50_000;
const KEY = new PermissionSet(['DOCKER:READ_ANY']);
const PATHS = ['/api/dashboards/**', '/api/*/panels', '/**', '/public/*', '/', '/a/b/c/**'];
const TARGETS = [
  '/api/dashboards/7?from=now',
  '/api/7/panels',
  '/some/other/path',
  '/public/x.css',
  '/',
  '/a/b/c/d/%65',
];

interface Subject {
  count: number;
  router: Router;
  requests: RequestParts[];
  times: number[];
}

/** The CPU time of a decision in microseconds, the median of interleaved rounds, for each of `COUNTS`. */
export function measureRoutes(rounds: number): { count: number; time: number }[] {
  const subjects = COUNTS.map(subjectOf);
  for (let round = -2; round < rounds; round += 1) {
    for (const { router, requests, times } of subjects) {
      const before = process.cpuUsage();
      for (let index = 0; index < DECISIONS; index += 1) decide(router, requests[index % requests.length]!, KEY);
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) times.push((user + system) / DECISIONS);
    }
  }
  return subjects.map(({ count, times }) => ({ count, time: median(times) }));
}

export function routesTable(results: readonly { count: number; time: number }[]): string {
  return table(
    ['routes', 'CPU µs a decision', 'to the first'],
    results.map(({ count, time }) => [figure(count), figure(time, 2), figure(time / results[0]!.time, 2)]),
  );
}

/** Hosts with six routes each, and requests to all of them. */
function subjectOf(count: number): Subject {
  const routes = Array.from({ length: count }, (_, index): Route => ({
    host: hostOf(index),
    path: PATHS[index % PATHS.length]!,
    allow: { kind: 'all', permissions: ['DOCKER:READ_ANY'] },
    preflightOpen: false,
  }));
  const router = createRouter(routes);
  const requests = routes.map((_, index) => {
    return { method: 'GET', host: hostOf(index), target: TARGETS[index % TARGETS.length]! };
  });
  assert.ok(requests.every((request) => decide(router, request, KEY).outcome === 'allowed'));
  return { count, router, requests, times: [] };
}

function hostOf(index: number): string {
  return `service-${Math.floor(index / PATHS.length)}.example.org`;
}
