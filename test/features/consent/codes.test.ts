import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createCode, createUserCode, digestCode, readUserCode } from '../../../src/features/consent/codes.ts';

describe('codes', () => {
  it('for people have eight consonants, each equally likely', () => {
    const counts = new Map<string, number>();
    for (let count = 0; count < 5000; count += 1) {
      const code = createUserCode(randomBytes);
      assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
      for (const letter of code.replace('-', '')) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }
    assert.equal(counts.size, 20);
    // Each letter occurs 2,000 times among 40,000, plus or minus seven standard deviations.
    for (const count of counts.values()) assert.ok(Math.abs(count - 2000) < 310, `${count}`);
  });

  it('for people are read with and without dashes, spaces and capitals', () => {
    for (const text of ['WDJB-MJHT', 'wdjbmjht', ' wdjb mjht ', 'WDJB–MJHT', 'W-D-J-B-M-J-H-T'])
      assert.equal(readUserCode(text), 'WDJB-MJHT', text);
    for (const text of ['', 'WDJB-MJH', 'WDJB-MJHTT', 'WDJB-MJHA', 'WDJB_MJHT', 'WDJB-MJH\u0422'])
      assert.equal(readUserCode(text), undefined, text);
  });

  it('for programs are 32 random bytes, and the stored form differs between kinds', () => {
    assert.match(createCode(randomBytes), /^[A-Za-z0-9_-]{43}$/);
    assert.notEqual(digestCode('device', 'x'), digestCode('redirect', 'x'));
  });
});
