import assert from 'node:assert/strict';
import { findRouteIssues } from '../../../src/features/routes/route-issues.ts';
import { type Allow, createRouter, findUnreachable } from '../../../src/features/routes/router.ts';
import { Random } from '../../support/random.ts';
import { decidingIndex, everyRequest, FEW_PATTERNS, randomRoutes, route } from './support/routes.ts';

const faultsOf = (...routes: Parameters<typeof route>[]) =>
  findRouteIssues(routes.map((each) => route(...each))).map(({ indexes }) => indexes);
const unreachable = (...patterns: string[]) => findUnreachable(patterns.map((pattern) => route(pattern)));

describe('routes that contradict each other', () => {
  it('are two with the same host, path and method that say different things', () => {
    assert.deepEqual(
      findRouteIssues([route('*/'), route('GET,PUT a.org/b/**', 'open'), route('PUT,GET,HEAD A.org/%62/**/')]),
      [
        {
          indexes: [1, 2],
          message:
            'Routes 2 and 3 are both for A.org/%62/**/, with PUT and GET, and say different things. Keep one of them.',
        },
      ],
    );
    assert.deepEqual(faultsOf(['a/b'], ['a/b', 'A:READ_ANY']), [[0, 1]]);
    assert.deepEqual(faultsOf(['a/b'], ['a/b', 'key', true]), [[0, 1]]);
    assert.deepEqual(faultsOf(['a/b', 'A:READ_ANY+B:READ_ANY'], ['a/b', 'A:READ_ANY|B:READ_ANY']), [[0, 1]]);
    assert.deepEqual(faultsOf(['GET a/b'], ['PUT a/b', 'open'], ['GET,PUT a/b', 'A:READ_ANY']), [[0, 2]]);
  });

  it('are two for the same part of an MCP server, or for it and a whole path, but not for other parts', () => {
    const part = (tools: string[], more = {}) => ({
      ...route('a/mcp'),
      mcp: { tools, resources: [], prompts: [], ...more },
    });
    const issuesOf = (...routes: Parameters<typeof findRouteIssues>[0]) =>
      findRouteIssues(routes).map(({ indexes }) => indexes);
    assert.deepEqual(issuesOf(part(['a']), part(['b*']), part([], { prompts: ['a'] })), []);
    assert.deepEqual(issuesOf(part(['a']), part(['b']), part(['c', 'b'])), [[1, 2]]);
    assert.deepEqual(issuesOf(part(['a']), route('a/mcp')), [[0, 1]]);
    assert.deepEqual(issuesOf(part(['a']), { ...part(['b']), to: 'other' }), [[0, 1]]);
    assert.deepEqual(findUnreachable([part(['a']), part(['b'])]), []);
  });

  it('are each named once, with the one that they contradict', () => {
    assert.deepEqual(faultsOf(['a/b'], ['a/b', 'open'], ['a/b'], ['a/b', 'open'], ['*/']), [
      [0, 1],
      [0, 3],
    ]);
  });

  it('have the same rank', () => {
    const others = ['GET a/b', 'a/*', 'a/**', 'a/b/**', '*.a/b', '*/b', 'PUT a/b', 'a/b/c'];
    assert.deepEqual(faultsOf(['a/b'], ...others.map((pattern): [string, string] => [pattern, 'open'])), []);
  });

  it('say different things', () => {
    assert.deepEqual(faultsOf(['GET a/b', 'open'], ['a/b', 'open'], ['GET,PUT a/b', 'open']), []);
    assert.deepEqual(faultsOf(['a/b', 'A:READ_ANY+B:READ_ANY'], ['a/b', 'B:READ_ANY+A:READ_ANY']), []);
    const one: Allow = { kind: 'any', permissions: ['A:READ_ANY'] };
    assert.deepEqual(faultsOf(['a/b', one], ['a/b', 'A:READ_ANY']), []);
  });

  it('do not occur in a file that decides each request in one way', () => {
    for (let seed = 1; seed <= 120; seed += 1) {
      const routes = randomRoutes(new Random(seed), 12, FEW_PATTERNS);
      const reversed = routes.toReversed();
      const [router, other] = [createRouter(routes), createRouter(reversed)];
      const answers = everyRequest().map((request) => [
        routes[decidingIndex(router, request) ?? -1],
        reversed[decidingIndex(other, request) ?? -1],
      ]);
      const differ = answers.some(([one, two]) => JSON.stringify(one?.allow) !== JSON.stringify(two?.allow));
      // If a more specific route covers all contradictory requests, no answer differs.
      if (differ) assert.ok(findRouteIssues(routes).length > 0, `seed ${seed}`);
      if (findRouteIssues(routes).length === 0) assert.ok(!differ, `seed ${seed}`);
      assert.equal(findRouteIssues(routes).length === 0, findRouteIssues(reversed).length === 0, `seed ${seed}`);
    }
  });
});

describe('routes that can never match', () => {
  it('are those whose requests all match others with the same host and path', () => {
    assert.deepEqual(unreachable('a/b', 'GET a/b', 'A/%62'), [{ index: 2, behind: [0] }]);
    assert.deepEqual(unreachable('GET a/b', 'PUT a/b', 'GET,PUT a/b'), [{ index: 2, behind: [0, 1] }]);
  });

  it('are those with ** if others leave them no path', () => {
    assert.deepEqual(unreachable('a/b/**', 'a/b', 'a/b/*/**'), [{ index: 0, behind: [1, 2] }]);
    assert.deepEqual(unreachable('a/**', 'a/', 'a/*', 'a/*/*/**'), [{ index: 0, behind: [1, 2, 3] }]);
    assert.deepEqual(unreachable('GET a/**', 'a/', 'GET,PUT a/*/**'), [{ index: 0, behind: [1, 2] }]);
  });

  it('do not include those that keep a host, a path or a method', () => {
    const patterns = [
      '*/**',
      '*.a/**',
      'a/**',
      'a/b/**',
      'GET a/b',
      'a/b',
      'a/*/c',
      'a/*/**',
      'GET a/',
      'HEAD,GET a/**',
    ];
    assert.deepEqual(unreachable(...patterns), []);
  });

  it('are exactly those that decide no request', () => {
    for (let seed = 1; seed <= 120; seed += 1) {
      const routes = randomRoutes(new Random(seed), 20, FEW_PATTERNS);
      const router = createRouter(routes);
      const deciding = new Set(everyRequest().map((request) => decidingIndex(router, request)));
      const idle = routes.flatMap((_, index) => (deciding.has(index) ? [] : [index]));
      assert.deepEqual(
        findUnreachable(routes).map(({ index }) => index),
        idle,
        `seed ${seed}`,
      );
      const covered = routes.flatMap((_, index) => (router.findCover(index).length > 0 ? [index] : []));
      assert.deepEqual(covered, idle, `seed ${seed}`);
    }
  });
});
