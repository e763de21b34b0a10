import assert from 'node:assert/strict';
import { createRouter } from '../../../src/features/routes/router.ts';
import { Random } from '../../support/random.ts';
import { decidingIndex, METHODS, randomRequest, randomRoutes, route, slowlyFound } from './support/routes.ts';

/** The pattern of the route that decides about `GET example.org/path`. */
function decides(patterns: readonly string[], request: string): string | undefined {
  const { host, path, methods } = route(request);
  const router = createRouter(patterns.map((pattern) => route(pattern)));
  const found = router.find({ method: methods![0]!, host, path });
  if (!found) return undefined;
  return 'route' in found ? patterns[found.index] : `not ${patterns[found.otherCaseOf.index]}`;
}

describe('the route that decides', () => {
  const EXAMPLES: readonly (readonly [request: string, decides: string | undefined, others: readonly string[]])[] = [
    // Hosts
    ['GET a.b.org/x', 'a.b.org/**', ['*.b.org/x', '*/x', '*.org/x']],
    ['GET a.b.org/x', '*.b.org/**', ['*.org/x', '*/x', 'b.org/x', '*.a.b.org/x']],
    ['GET c.a.b.org/x', '*.a.b.org/**', ['*.b.org/x', 'a.b.org/x']],
    ['GET b.org/x', '*/**', ['*.b.org/x', 'a.b.org/x']],
    ['GET ab.org/x', undefined, ['*.b.org/x', 'b.org/x']],
    ['GET [::1]/x', '[::1]/x', ['*/x']],
    ['GET a.b.org/x', '*.b.org/**', ['a.b.org/y']],
    // Paths
    ['GET h/', 'h/', ['h/**', 'h/*']],
    ['GET h/', 'h/**', ['h/*', 'h/a']],
    ['GET h/a', 'h/a', ['h/*', 'h/**', 'h/a/**']],
    ['GET h/a', 'h/a/**', ['h/*', 'h/**', 'h/a/*']],
    ['GET h/a', 'h/*', ['h/*/**', 'h/**']],
    ['GET h/a/b/c', 'h/a/**', ['h/*/b/c', 'h/**']],
    ['GET h/a/b/c', 'h/*/b/c', ['h/*/b/**', 'h/*/*/c', 'h/a/b', 'h/a/b/d']],
    ['GET h/a/b/c', 'h/a/*/c', ['h/*/b/c', 'h/a/b/d', 'h/a/*/**']],
    ['GET h/a/b', undefined, ['h/a', 'h/*', 'h/a/b/c', 'h/a/b/*', 'h/']],
    // Methods
    ['GET h/a', 'GET h/a', ['h/a', 'POST h/a']],
    ['PUT h/a', 'h/a', ['GET h/a', 'POST h/a']],
    ['POST h/a', 'h/*', ['GET h/a']],
    ['HEAD h/a', undefined, ['GET h/a', 'OPTIONS h/a']],
    ['GET h/a', 'h/a', ['GET h/*', 'GET */a']],
  ];
  for (const [request, expected, others] of EXAMPLES) {
    const against = others.join(' and ');
    it(`about ${request} is ${expected ?? 'none'}, where there are ${against} too`, () => {
      const patterns = [...(expected === undefined ? [] : [expected]), ...others];
      assert.equal(decides(patterns, request), expected);
      assert.equal(decides(patterns.toReversed(), request), expected);
    });
  }

  it('is the same as in a slow comparison of all routes, as are the next ones', () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const random = new Random(seed);
      const routes = randomRoutes(random, 1 + Math.floor(random.next() * 25));
      const router = createRouter(routes);
      for (let round = 0; round < 50; round += 1) {
        const request = randomRequest(random);
        const expected = slowlyFound(routes, request);
        const found = router.findAll(request).map(({ index }) => index);
        assert.deepEqual(found, expected, `seed ${seed}: ${JSON.stringify({ routes, request })}`);
        assert.equal(decidingIndex(router, request), expected[0]);
        const ofAny = METHODS.flatMap((method) => slowlyFound(routes, { ...request, method }));
        const foundOfAny = router.findForAnyMethod(request).map(({ index }) => index);
        assert.deepEqual(new Set(foundOfAny), new Set(ofAny), `seed ${seed}`);
        assert.equal(foundOfAny.length, new Set(foundOfAny).size);
      }
    }
  });

  const OTHER_CASES: readonly (readonly [request: string, decides: string | undefined, others: readonly string[]])[] = [
    ['GET h/Admin', 'not h/admin/**', ['h/**', 'h/*', '*/Admin']],
    ['GET h/x/ADMIN', 'not h/*/admin', ['h/**', 'h/*/**']],
    ['GET h/Admin', 'h/Admin', ['h/admin', 'h/**']],
    ['GET h/Admin/x', 'not h/admin/**', ['h/Admin/y', 'h/**']],
    ['GET h/Admin/X', 'not h/admin/x', ['h/**', 'h/admin/X/y']],
    ['GET h/STRASSE', 'not h/stra%C3%9Fe', ['h/**']],
    ['GET h/%C3%9C', 'not h/%C3%BC', ['h/**']],
    ['GET h/%E2%84%AA', 'not h/k', ['h/**']],
    // NFC and NFD, both ways, with another case, and compatibility forms.
    ['GET h/cafe%CC%81', 'not h/caf\u00e9', ['h/**']],
    ['GET h/caf%C3%A9', 'not h/cafe\u0301', ['h/**', 'h/*']],
    ['GET h/CAFE%CC%81/x', 'not h/caf\u00e9/**', ['h/**']],
    ['GET h/%EF%BD%81dmin', 'not h/admin', ['h/**']],
    ['GET h/%E1%84%92%E1%85%A1%E1%86%AB', 'not h/\ud55c', ['h/**']],
    ['GET h/cafe%CC%81', 'h/cafe\u0301', ['h/caf\u00e9', 'h/**']],
    ['GET h/cafe%CC%81', 'h/**', ['h/cafe', 'h/caf%C3%A8']],
    ['GET h/Admin', 'not h/admin', []],
    // Even in lower case, these would not match, or not come first.
    ['GET h/Admin', 'h/**', ['h/admin/x', 'POST h/admin', 'i/admin', '*/admin']],
    ['GET h/a/X', 'h/a/**', ['h/*/x']],
    ['GET h/Admin', undefined, ['h/admin/x']],
  ];
  for (const [request, expected, others] of OTHER_CASES) {
    it(`about ${request} is ${expected ?? 'none'}, where there are ${others.join(' and ')} too`, () => {
      const deciding = expected?.replace(/^not /, '');
      const patterns = [...(deciding === undefined ? [] : [deciding]), ...others];
      assert.equal(decides(patterns, request), expected);
      assert.equal(decides(patterns.toReversed(), request), expected);
    });
  }

  it('is the one that decides ignoring case, or there is none', () => {
    const tally = { same: 0, refused: 0 };
    for (let seed = 1; seed <= 400; seed += 1) {
      const random = new Random(seed);
      const routes = randomRoutes(random, 1 + Math.floor(random.next() * 25));
      const router = createRouter(routes);
      for (let round = 0; round < 50; round += 1) {
        const request = randomRequest(random);
        const path = Array.from(request.path, (letter) => (random.chance(0.3) ? letter.toUpperCase() : letter)).join(
          '',
        );
        const [heeded, ignored] = [path, request.path].map(
          (each) => slowlyFound(routes, { ...request, path: each })[0],
        );
        const isSame = heeded === ignored;
        tally[isSame ? 'same' : 'refused'] += 1;
        const found = router.find({ ...request, path });
        const told = found && ('route' in found ? found.index : `not ${found.otherCaseOf.index}`);
        assert.equal(told, isSame ? heeded : `not ${ignored}`, `seed ${seed}: ${JSON.stringify({ routes, path })}`);
      }
    }
    assert.ok(Math.min(tally.same, tally.refused) > 500, JSON.stringify(tally));
  });

  it('is the same, however the patterns and hosts are written', () => {
    const patterns = ['EXAMPLE.org/%61/', '*.BÜCHER.example/ü/**', '[0:0::1]/%2A'];
    assert.equal(decides(patterns, 'GET example.org/a'), patterns[0]);
    assert.equal(decides(patterns, 'GET x.xn--bcher-kva.example/%C3%BC/y'), patterns[1]);
    assert.equal(decides(patterns, 'GET [::1]/%2A'), patterns[2]);
    assert.equal(decides(patterns, 'GET [::1]/a'), undefined);
  });

  it('is not looked for among faulty patterns', () => {
    assert.throws(() => createRouter([route('a:1/')]), /^RangeError: "a:1" is not a host for a route/);
    assert.throws(() => createRouter([route('a/**/b')]), /^RangeError: "\/\*\*\/b" is not a path for a route/);
  });
});
