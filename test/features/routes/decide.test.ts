import assert from 'node:assert/strict';
import type { Permission } from '../../../src/keys/permissions/catalog.ts';
import { PermissionSet } from '../../../src/keys/permissions/permission-set.ts';
import { checkAllow, decide, requirementOf } from '../../../src/features/routes/decide.ts';
import type { RequestParts } from '../../../src/features/routes/request.ts';
import { createRouter } from '../../../src/features/routes/router.ts';
import { route } from './support/routes.ts';

const router = createRouter([
  route('a.org/open/**', 'open'),
  route('a.org/key', 'key'),
  route('a.org/all', 'A:READ_ANY+B:UPDATE_OWN'),
  route('a.org/any', 'A:READ_ANY|B:UPDATE_OWN'),
  route('PUT a.org/cors', 'A:READ_ANY', true),
  route('a.org/cors', 'key'),
  route('*/open/secret', 'A:READ_ANY'),
]);
const get = (target: string): RequestParts => ({ method: 'GET', host: 'a.org', target });
const keyWith = (...permissions: Permission[]) => new PermissionSet(permissions);
const preflight = (
  requestMethod: string | undefined,
  origin: string | undefined = 'https://b.org',
  method = 'OPTIONS',
) => ({
  ...get('/cors'),
  method,
  origin,
  requestMethod,
});

/** The outcome, without the route. */
function outcome(request: RequestParts, permissions?: PermissionSet): object {
  const { match, ...rest } = decide(router, request, permissions);
  return { ...rest, route: match && match.index };
}

describe('a request', () => {
  it('to an open route is allowed to everybody', () => {
    for (const permissions of [undefined, keyWith(), keyWith('A:READ_ANY')])
      assert.deepEqual(outcome(get('/open/x?y'), permissions), { outcome: 'allowed', used: [], route: 0 });
  });

  it('to a route for any key is refused without one', () => {
    assert.deepEqual(outcome(get('/key')), { outcome: 'refused', route: 1 });
    assert.deepEqual(outcome(get('/key'), keyWith()), { outcome: 'allowed', used: [], route: 1 });
  });

  it('that requires all of some permissions is forbidden to a key that lacks one', () => {
    assert.deepEqual(outcome(get('/all')), { outcome: 'refused', route: 2 });
    const missing = ['A:READ_ANY', 'B:UPDATE_OWN'];
    assert.deepEqual(outcome(get('/all'), keyWith()), { outcome: 'forbidden', missing, route: 2 });
    const one = outcome(get('/all'), keyWith('A:READ_OWN', 'B:UPDATE_ANY'));
    assert.deepEqual(one, { outcome: 'forbidden', missing: ['A:READ_ANY'], route: 2 });
    const both = outcome(get('/all'), keyWith('A:READ_ANY', 'B:UPDATE_ANY'));
    assert.deepEqual(both, { outcome: 'allowed', used: missing, route: 2 });
  });

  it('that requires any of some permissions is allowed by the first one that a key has', () => {
    assert.deepEqual(outcome(get('/any')), { outcome: 'refused', route: 3 });
    const missing = ['A:READ_ANY', 'B:UPDATE_OWN'];
    assert.deepEqual(outcome(get('/any'), keyWith('C:READ_ANY')), { outcome: 'forbidden', missing, route: 3 });
    assert.deepEqual(outcome(get('/any'), keyWith('B:UPDATE_ANY')), {
      outcome: 'allowed',
      used: ['B:UPDATE_OWN'],
      route: 3,
    });
    const both = outcome(get('/any'), keyWith('B:UPDATE_ANY', 'A:READ_ANY'));
    assert.deepEqual(both, { outcome: 'allowed', used: ['A:READ_ANY'], route: 3 });
  });

  it('that no route matches is forbidden, whatever the key', () => {
    for (const permissions of [undefined, keyWith('A:READ_ANY')])
      assert.deepEqual(outcome(get('/none'), permissions), {
        outcome: 'forbidden',
        refusal: 'no route matches',
        route: undefined,
      });
  });

  it('is forbidden where its query asks for a method that another requirement holds for', () => {
    const router2 = createRouter([
      route('GET,POST a.org/x', 'key'),
      route('a.org/x', 'A:UPDATE_ANY'),
      route('POST,PUT a.org/y', 'key', true),
      route('a.org/z', 'key'),
    ]);
    const decided = (method: string, target: string) => {
      const decision = decide(router2, { method, host: 'a.org', target }, keyWith());
      return 'refusal' in decision ? decision.refusal : decision.outcome;
    };
    const refusal = (method: string) => `the query asks for ${method}, which falls under another rule`;
    for (const query of [
      '_method=DELETE',
      'a=b&_method=delete',
      'a;_method=DELETE',
      '%5Fmethod=DELETE',
      '_METHOD=DELETE',
      '.method=DELETE',
      '+_method=DELETE',
      '_method[]=DELETE',
      // Programs that read it as a C string stop here.
      '_method%00=DELETE',
      '_HttpMethod=DELETE',
      '_method=GET&_method=DELETE',
    ])
      assert.equal(decided('POST', `/x?${query}`), refusal('DELETE'), query);
    for (const query of ['_method=GET', '_method=post', 'method=DELETE', 'a=_method', 'x_method=DELETE'])
      assert.equal(decided('POST', `/x?${query}`), 'allowed', query);
    assert.equal(decided('POST', '/z?_method=DELETE'), 'allowed');
    assert.equal(decided('POST', '/y?_method=PUT'), 'allowed');
    assert.equal(decided('POST', '/y?_method=DELETE'), refusal('DELETE'));
    const asked = { method: 'OPTIONS', host: 'a.org', origin: 'https://b.org', requestMethod: 'PUT' };
    assert.equal(decide(router2, { ...asked, target: '/y' }, undefined).outcome, 'allowed');
    assert.equal(decide(router2, { ...asked, target: '/y?_method=DELETE' }, undefined).outcome, 'forbidden');
  });

  it('has a requirement that is known before its key is', () => {
    const required = (target: string) => requirementOf(router, get(target));
    const { match, ...refused } = required('/open//x');
    assert.deepEqual([match, refused], [undefined, { refusal: 'the path has an empty segment' }]);
    const all = required('/all');
    assert.ok('allow' in all);
    assert.deepEqual([all.match.index, all.allow], [2, router.routes[2]!.allow]);
    const missing = ['A:READ_ANY'];
    assert.deepEqual(checkAllow(all.allow, keyWith('B:UPDATE_OWN')), { outcome: 'forbidden', missing });
  });

  const REFUSED: readonly (readonly [string, RequestParts])[] = [
    ['the path has a "." or ".." segment', get('/open/../key')],
    ['the path has an encoded dot', get('/open/%2e%2e/key')],
    ['the path differs from a route only by case, or by how Unicode writes a character', get('/Open/x')],
    ['the path has a "#" or "?"', get('/key#/open/')],
    ['the query has a "#", a space or a control character', get('/open/x?#')],
    ['the host is not a name or an address', { ...get('/open/x'), host: 'a.org/open' }],
    ['the host is empty', { ...get('/open/x'), host: '' }],
    ['the method is not a token', { ...get('/open/x'), method: '' }],
    ['the method is not in upper case', { ...get('/open/x'), method: 'get' }],
  ];
  for (const [refusal, request] of REFUSED) {
    it(`is forbidden everywhere, as ${refusal}`, () => {
      assert.deepEqual(outcome(request, keyWith('A:READ_ANY')), { outcome: 'forbidden', refusal, route: undefined });
    });
  }
});

describe('a CORS preflight', () => {
  it('passes without a key where the route of the requested method lets preflights pass', () => {
    assert.deepEqual(outcome(preflight('PUT')), { outcome: 'allowed', used: [], route: 4 });
  });

  it('is a request as any other where it does not', () => {
    assert.deepEqual(outcome(preflight('GET')), { outcome: 'refused', route: 5 });
    assert.deepEqual(outcome(preflight('GET'), keyWith()), { outcome: 'allowed', used: [], route: 5 });
  });

  it('does not pass where its path differs from a route only by case', () => {
    const refusal = 'the path differs from a route only by case, or by how Unicode writes a character';
    const request = { ...preflight('PUT'), target: '/CORS' };
    assert.deepEqual(outcome(request), { outcome: 'forbidden', refusal, route: undefined });
  });

  it('is only a request that a browser would send', () => {
    for (const request of [
      preflight(undefined),
      { ...preflight('PUT'), origin: undefined },
      preflight('put'),
      preflight('PUT, GET'),
      preflight(''),
      preflight('PUT', 'https://b.org', 'POST'),
    ])
      assert.deepEqual(outcome(request), { outcome: 'refused', route: 5 });
    assert.equal(decide(router, preflight('PUT', 'https://b.org', 'PUT'), undefined).outcome, 'refused');
  });
});
