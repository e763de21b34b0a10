import assert from 'node:assert/strict';
import { keyFields, fixedFields, RESTRICTIONS } from '../../../src/keys/key/index.ts';

const DEFAULTS = { defaultLimits: ['100/m', '5/s'] } as const;

/** Values from wide to narrow, and some that overlap with none of them. */
const VALUES: Record<string, readonly unknown[]> = {
  limits: [[], ['200/m'], ['10/m'], ['10/m', '3/uses'], ['3/uses'], ['1000/h']],
  allowFrom: [null, ['10.0.0.0/8', '2001:db8::/32'], ['10.1.0.0/16'], ['10.1.2.3'], ['192.0.2.1']],
  audience: [null, 'https://example.org', 'https://example.org/mcp', 'https://example.com'],
};

describe('fields that restrict a key', () => {
  for (const [name, { closer, common }] of RESTRICTIONS) {
    const values = VALUES[name]!;
    const isCloser = (value: unknown, than: unknown) => closer([value], [than], DEFAULTS) !== undefined;

    it(`${name}: a value is as close as itself`, () => {
      for (const value of values) assert.equal(isCloser(value, value), false);
    });

    it(`${name}: what two values have in common allows no more than either`, () => {
      for (const now of values)
        for (const before of values) {
          const both = common(now, before, DEFAULTS);
          if (both === undefined) assert.ok(isCloser(now, before) && isCloser(before, now));
          else assert.deepEqual([isCloser(now, both), isCloser(before, both)], [false, false]);
        }
    });

    it(`${name}: a value has itself in common with a wider one`, () => {
      for (const now of values)
        for (const before of values) {
          if (isCloser(before, now)) continue;
          const both = common(now, before, DEFAULTS);
          assert.deepEqual([isCloser(both, now), isCloser(now, both)], [false, false]);
        }
    });
  }

  it('have a rule each, and no label has one', () => {
    const ruled = Object.entries({ ...keyFields, ...fixedFields }).filter(([, field]) => 'widens' in field);
    assert.deepEqual(
      ruled.map(([name]) => name),
      Object.keys(VALUES),
    );
  });
});
