import assert from 'node:assert/strict';
import { readRotation } from '../../../src/keys/key/rotation.ts';
import { previousUseSince } from '../../../src/keys/key/use.ts';

const NOW = Date.UTC(2030, 0, 1);
const HOUR = 3_600_000;

describe('a request to rotate a secret', () => {
  const issuesOf = (request: object) =>
    readRotation(request, NOW).issues.map(({ code, message }) => `${code} ${message}`);

  it('disables no keys that the key has created, all of them, or those created since a time or for so long', () => {
    const since = (request: object) => readRotation(request, NOW).disableSince;
    assert.deepEqual([since({}), since({ disableCreated: false }), since({ disableCreated: true })], [null, null, 0]);
    assert.equal(since({ disableCreated: true, createdSince: '1h' }), NOW - HOUR);
    assert.equal(since({ disableCreated: true, createdSince: '2029-12-31T00:00:00Z' }), NOW - 24 * HOUR);
  });

  it('has a time of creation that can be read, and only where keys are disabled', () => {
    assert.deepEqual(issuesOf({ disableCreated: true, createdSince: 'yesterday' }), [
      'INPUT_INVALID "yesterday" is not a time. Write a date, such as 2030-12-31, an RFC 3339 date and time, such as 2030-12-31T23:59:59Z, or an age, such as 24h.',
    ]);
    assert.deepEqual(issuesOf({ createdSince: '1h' }), [
      'USAGE A time of creation needs the option to disable created keys.',
    ]);
    assert.deepEqual(issuesOf({ disableCreated: true, createdSince: '1h' }), []);
    assert.deepEqual(issuesOf({ createdSince: null }), []);
  });

  it('has a grace in lower case', () => {
    assert.deepEqual(issuesOf({ grace: '1H' }), [
      'EXPIRY_INVALID "1H" is not a duration. Units are lower case: write 1h.',
    ]);
    assert.deepEqual(issuesOf({ grace: 'soon' }), [
      'EXPIRY_INVALID "soon" is not a duration. Write a number with s, m, h, d or w, such as 90m or 24h, or 0s for none.',
    ]);
  });
});

describe('the last use of a previous secret', () => {
  const used = (previousLastUsedAt: number | null) =>
    previousUseSince(
      { previousPublicId: 'previous', startedAt: 1000, grace: 0, previousEndsAt: null },
      { uses: 1, lastUsedAt: 5000, previousLastUsedAt },
    );

  it('counts from the rotation on: before, it was that of another secret', () => {
    assert.deepEqual([used(null), used(999), used(1000), used(1001)], [null, null, 1000, 1001]);
  });
});
