import assert from 'node:assert/strict';
import { PermissionSet } from '../../../src/keys/permissions/permission-set.ts';
import { explain } from '../../../src/features/routes/decide.ts';
import { createRouter } from '../../../src/features/routes/router.ts';
import { route } from './support/routes.ts';

/** The reason why each matching pattern ranks below the previous one. */
function reasons(request: string, ...patterns: string[]): Record<string, string> {
  const { host, path, methods } = route(request);
  const router = createRouter(patterns.map((pattern) => route(pattern)));
  const { others } = explain(router, { method: methods![0]!, host, target: path }, undefined);
  return Object.fromEntries(others.map(({ match, because }) => [patterns[match.index]!, because]));
}

describe('an explanation', () => {
  it('says why each route comes after the one before it', () => {
    const patterns = ['*/**', '*.b.org/a', 'GET a.b.org/a', 'a.b.org/a', 'a.b.org/a/**', 'a.b.org/*', 'a.b.org/*/**'];
    assert.deepEqual(reasons('GET a.b.org/a', ...patterns), {
      'a.b.org/a': 'a route that lists the method comes before one that lists none',
      'a.b.org/a/**': '/a ends where /a/** has **',
      'a.b.org/*': 'segment 1, a, is more specific than *',
      'a.b.org/*/**': '/* ends where /*/** has **',
      '*.b.org/a': 'a.b.org is more specific than *.b.org',
      '*/**': '*.b.org is more specific than *',
    });
    assert.deepEqual(reasons('GET h/', 'h/', 'h/**'), { 'h/**': '/ ends where /** has **' });
    assert.deepEqual(reasons('GET h/a/b', 'h/a/**', 'h/*/b', 'h/**'), {
      'h/*/b': 'segment 1, a, is more specific than *',
      'h/**': 'segment 1, *, is more specific than **',
    });
  });

  it('names the routes that are for other methods', () => {
    const patterns = ['*/**', 'GET h/a', 'PUT,GET h/**', 'POST h/a', 'GET i/a', 'GET h/b'];
    const router = createRouter(patterns.map((pattern) => route(pattern)));
    const { decision, otherMethods } = explain(router, { method: 'POST', host: 'h', target: '/a' }, undefined);
    assert.equal(decision.match?.index, 3);
    assert.deepEqual(
      otherMethods.map(({ index }) => index),
      [1, 2],
    );
  });

  it('names as many other routes as are wanted, the nearest ones', () => {
    const router = createRouter(['h/a', 'h/*', 'h/**', '*/**', 'PUT h/a', 'PUT h/*'].map((pattern) => route(pattern)));
    const { others, otherMethods } = explain(router, { method: 'GET', host: 'h', target: '/a' }, undefined, 1);
    assert.deepEqual([others.map(({ match }) => match.index), otherMethods.map(({ index }) => index)], [[1], [4]]);
  });

  it('has the decision, and the request as it was compared', () => {
    const router = createRouter([route('h/a', 'A:READ_ANY')]);
    const parts = { method: 'GET', host: 'H:80', target: '/%61/?b' };
    const found = explain(router, parts, new PermissionSet());
    assert.deepEqual(found.request, { method: 'GET', host: 'h', path: '/a' });
    assert.deepEqual(found.decision, {
      outcome: 'forbidden',
      match: router.find({ method: 'GET', host: 'h', path: '/a' }),
      missing: ['A:READ_ANY'],
    });
    assert.equal(explain(router, parts, undefined).decision.outcome, 'refused');
  });

  it('of a request that is not canonical has no route', () => {
    const router = createRouter([route('*/**')]);
    assert.deepEqual(explain(router, { method: 'GET', host: 'h', target: '/a//b' }, undefined), {
      decision: { outcome: 'forbidden', match: undefined, refusal: 'the path has an empty segment' },
      request: undefined,
      preflightFor: undefined,
      otherCaseOf: undefined,
      others: [],
      otherMethods: [],
    });
  });

  it('of a path that differs from a route only by case names that route', () => {
    const router = createRouter([route('*/**'), route('h/admin/**')]);
    const { decision, otherCaseOf, others } = explain(
      router,
      { method: 'GET', host: 'h', target: '/Admin' },
      undefined,
    );
    const refusal = 'the path differs from a route only by case, or by how Unicode writes a character';
    assert.deepEqual(decision, { outcome: 'forbidden', match: undefined, refusal });
    assert.deepEqual([otherCaseOf?.index, others], [1, []]);
  });

  it('of a preflight that passes is about the method that it asks for', () => {
    const router = createRouter([
      route('PUT h/a', 'key', true),
      route('h/**', 'key', true),
      route('OPTIONS h/a', 'open'),
    ]);
    const parts = { method: 'OPTIONS', host: 'h', target: '/a', origin: 'https://o', requestMethod: 'PUT' };
    const { preflightFor, others, otherMethods } = explain(router, parts, undefined);
    assert.deepEqual([preflightFor, others.map(({ match }) => match.index)], ['PUT', [1]]);
    assert.deepEqual(
      otherMethods.map(({ index }) => index),
      [2],
    );
    assert.equal(explain(router, { ...parts, origin: undefined }, undefined).preflightFor, undefined);
  });
});
