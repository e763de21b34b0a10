import assert from 'node:assert/strict';
import { formatTime } from '../../../src/keys/basics/time.ts';
import { readUsageRequest, type UsageRequest } from '../../../src/features/usage/usage.ts';

const NOW = Date.UTC(2030, 5, 15, 10, 30);

function rangeOf(request: UsageRequest): string[] {
  const { by, from, to } = readUsageRequest(request, NOW);
  return [by, ...[from, to].map((time) => formatTime(time).slice(0, 16))];
}

describe('a request for the use of a key', () => {
  for (const [what, request, expected] of [
    ['the last 24 hours by default', {}, ['HOUR', '2030-06-14T11:00', '2030-06-15T11:00']],
    ['the last 30 days by default', { by: 'DAY' }, ['DAY', '2030-05-17T00:00', '2030-06-16T00:00']],
    ['nulls as what is left out', { from: null, to: null, by: null }, ['HOUR', '2030-06-14T11:00', '2030-06-15T11:00']],
    ['ages', { from: '3h', to: '1h', by: 'hour' }, ['HOUR', '2030-06-15T07:00', '2030-06-15T10:00']],
    [
      'dates, of which the last is left out',
      { from: '2030-06-01', to: '2030-06-03', by: 'day' },
      ['DAY', '2030-06-01T00:00', '2030-06-03T00:00'],
    ],
    [
      'whole hours around two times',
      { from: '2030-06-15T01:59:59Z', to: '2030-06-15T02:00:01Z' },
      ['HOUR', '2030-06-15T01:00', '2030-06-15T03:00'],
    ],
    [
      'hours in UTC, whatever the offset',
      { from: '2030-06-15T06:30:00+05:30', to: '2030-06-15T08:30:00+05:30' },
      ['HOUR', '2030-06-15T01:00', '2030-06-15T03:00'],
    ],
    ['nothing after the present hour', { to: '2031-01-01' }, ['HOUR', '2030-06-14T11:00', '2030-06-15T11:00']],
    ['all hours that are kept', { from: '90d' }, ['HOUR', '2030-03-17T10:00', '2030-06-15T11:00']],
    ['the first hour that is kept', { from: '2030-03-17' }, ['HOUR', '2030-03-17T00:00', '2030-06-15T11:00']],
    ['all days that are kept', { from: '730d', by: 'DAY' }, ['DAY', '2028-06-15T00:00', '2030-06-16T00:00']],
    ['no hours before the first one', { to: '2030-03-17T05:00:00Z' }, ['HOUR', '2030-03-17T00:00', '2030-03-17T05:00']],
  ] as const)
    it(`is for ${what}`, () => assert.deepEqual(rangeOf(request), expected));

  for (const [what, request, message] of [
    ['a time that is none', { from: 'yesterday' }, /^"yesterday" is not a time\. Write a date/],
    ['another end that is none', { to: '5M' }, /^"5M" is not a time\. Units are lower case/],
    ['a time that is empty, as by a variable that is not set', { from: '' }, /^"" is not a time\. Write a date/],
    ['another end that is empty', { to: '' }, /^"" is not a time\. Write a date/],
    ['a period that is empty', { by: '' }, 'Use is counted by hour or by day, not by "".'],
    ['another period', { by: 'week' }, 'Use is counted by hour or by day, not by "week".'],
    [
      'hours that are kept no longer',
      { from: '2030-03-16T23:59:59Z' },
      '"2030-03-16T23:59:59Z" is too early: hours are kept for 90 days, since 2030-03-17T00:00:00.000Z. ' +
        'Ask by day, or for a later time.',
    ],
    [
      'days that are kept no longer',
      { from: '2028-06-14', by: 'DAY' },
      '"2028-06-14" is too early: days are kept for 730 days, since 2028-06-15T00:00:00.000Z. Ask for a later time.',
    ],
    ['an end before all that is kept', { to: '999999999w' }, /^"999999999w" is too early/],
    [
      'a start after the end',
      { from: '1h', to: '5h' },
      '"1h" is not before 2030-06-15T06:00:00.000Z. Choose a start that has passed and is before the end.',
    ],
    ['a start in the future', { from: '9999-12-31' }, /^"9999-12-31" is not before 2030-06-15T11/],
  ] as const)
    it(`is refused for ${what}`, () =>
      assert.throws(() => readUsageRequest(request, NOW), { code: 'INPUT_INVALID', message }));
});
