import assert from 'node:assert/strict';
import { formatTime, readDate, readPastTime } from '../../../src/keys/basics/time.ts';

const NOW = Date.UTC(2030, 0, 1);

describe('a time', () => {
  it('is an RFC 3339 date and time', () => {
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

  it('in the past is a timestamp, an age, or a date, which means its start in UTC', () => {
    const rows = ['24h', '2029-12-31T00:00:00Z', '2029-12-31', ' 2029-12-31 '];
    for (const text of rows) assert.equal(readPastTime(text, NOW), NOW - 86_400_000, text);
    const wrong = ['yesterday', '2029-12', '2029-02-29', '2029-12-31T', '2029-12-31Z', '20291231', '29-12-31'];
    for (const text of wrong) assert.equal(readPastTime(text, NOW), undefined, text);
  });

  it('is shown by RFC 3339, in UTC', () => {
    assert.deepEqual([formatTime(NOW + 1), formatTime(null)], ['2030-01-01T00:00:00.001Z', null]);
  });

  it('is written as the first or the last one of RFC 3339 if it is invalid', () => {
    const [first, last] = ['0000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'];
    assert.deepEqual(
      [Number.NaN, -9e15, 9e15].map((time) => formatTime(time)),
      [first, first, last],
    );
  });
});
