import assert from 'node:assert/strict';
import { durationHint, formatDuration, readDuration } from '../../../src/keys/basics/duration.ts';
import { pastTimeRemedy } from '../../../src/keys/basics/time.ts';

describe('a duration', () => {
  it('is a number with a unit', () => {
    const rows = {
      '1s': 1000,
      '90m': 5_400_000,
      '12h': 43_200_000,
      '30d': 2_592_000_000,
      ' 2w ': 1_209_600_000,
      '999999999s': 999_999_999_000,
    };
    for (const [text, milliseconds] of Object.entries(rows)) assert.equal(readDuration(text), milliseconds, text);
    const wrong = ['', '0m', '-5m', '5', 'm', '1.5h', '1h30m', '1y', '1e9s', '9999999999d', '１h', '12H', '1M', 'x1h'];
    for (const text of wrong) assert.equal(readDuration(text), undefined, text);
  });

  it('is formatted in its largest whole unit, which can be read again', () => {
    const rows = { '1h': 3_600_000, '90m': 5_400_000, '30d': 2_592_000_000, '7d': 604_800_000, '59s': 59_000 };
    for (const [text, milliseconds] of Object.entries(rows))
      assert.deepEqual([formatDuration(milliseconds), readDuration(text)], [text, milliseconds]);
    assert.equal(formatDuration(0), '0s');
  });

  it('has its unit in lower case, which is what to write in place of capitals', () => {
    const rows = {
      '12H': 'Units are lower case: write 12h.',
      ' 09D ': 'Units are lower case: write 9d.',
      '1M': 'Units are lower case: 1m is 1 minute; for months write 30d.',
      '3M': 'Units are lower case: 3m is 3 minutes; for months write 90d.',
    };
    for (const [text, hint] of Object.entries(rows))
      assert.deepEqual([durationHint(text), pastTimeRemedy(text)], [hint, hint], text);
    const general =
      'Write a date, such as 2030-12-31, an RFC 3339 date and time, such as 2030-12-31T23:59:59Z, or an age, such as 24h.';
    for (const text of ['', '12h', '12', 'H', 'x12H', '12Hx', '1234567890H'])
      assert.deepEqual([durationHint(text), pastTimeRemedy(text)], [undefined, general], text);
  });
});
