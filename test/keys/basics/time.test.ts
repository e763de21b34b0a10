import assert from 'node:assert/strict';
import {
  durationHint,
  formatDuration,
  formatTime,
  pastTimeRemedy,
  readDate,
  readDuration,
  readPastTime,
} from '../../../src/keys/basics/time.ts';

const NOW = Date.UTC(2030, 0, 1);

describe('a time', () => {
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

  it('or an RFC 3339 date and time', () => {
    const rows = {
      '2030-06-01T12:00:00Z': Date.UTC(2030, 5, 1, 12),
      '2030-06-01t12:00:00.5+02:00': Date.UTC(2030, 5, 1, 10, 0, 0, 500),
      '2030-06-01T12:00:00.25-02:00': Date.UTC(2030, 5, 1, 14, 0, 0, 250),
      '2032-02-29 00:00:00z': Date.UTC(2032, 1, 29),
      ' 2030-06-01T12:00:00Z ': Date.UTC(2030, 5, 1, 12),
    };
    for (const [text, instant] of Object.entries(rows)) assert.equal(readDate(text), instant, text);
    const wrong = [
      '',
      'tomorrow',
      '2030-06-01',
      '2030-06-01T12:00:00',
      '2030-02-30T00:00:00Z',
      '2031-02-29T00:00:00Z',
      '2030-13-01T00:00:00Z',
      '2030-06-01T24:00:00Z',
      '2030-06-01T24:00:01Z',
      '2030-06-01T12:00:00+24:00',
      '2030-06-01T12:00:00+02:60',
      '2030-06-01T12:00:60Z',
      '1893456000',
      '2030-06-01T12:00:00+25:00',
      'x2030-06-01T12:00:00Z',
      '2030-06-01T12:00:00Zx',
    ];
    for (const text of wrong) assert.equal(readDate(text), undefined, text);
  });

  it('in the past is either of them, or a date alone, which is its start in UTC', () => {
    const rows = ['24h', '2029-12-31T00:00:00Z', '2029-12-31', ' 2029-12-31 '];
    for (const text of rows) assert.equal(readPastTime(text, NOW), NOW - 86_400_000, text);
    const wrong = ['yesterday', '2029-12', '2029-02-29', '2029-12-31T', '2029-12-31Z', '20291231', '29-12-31'];
    for (const text of wrong) assert.equal(readPastTime(text, NOW), undefined, text);
  });

  it('is a duration in its largest whole unit, which can be read again', () => {
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

  it('is shown by RFC 3339, in UTC', () => {
    assert.deepEqual([formatTime(NOW + 1), formatTime(null)], ['2030-01-01T00:00:00.001Z', null]);
  });

  it('is written as the first or the last one that RFC 3339 has, where it is none', () => {
    const [first, last] = ['0000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'];
    assert.deepEqual(
      [Number.NaN, -9e15, 9e15].map((time) => formatTime(time)),
      [first, first, last],
    );
  });
});
