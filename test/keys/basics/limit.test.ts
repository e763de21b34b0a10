import assert from 'node:assert/strict';
import { parseLimits, splitLimit } from '../../../src/keys/basics/limit.ts';

const messagesOf = (...texts: string[]) => parseLimits(texts).issues.map(({ message }) => message);

describe('limits', () => {
  it('are a number and a unit, from the shortest to the longest, each once', () => {
    assert.deepEqual(parseLimits(['7/month', ' 100 / m ', '5/s', '010000/d', '3/h', '100/m']), {
      values: ['5/s', '100/m', '3/h', '10000/d', '7/month'],
      issues: [],
    });
    assert.deepEqual(splitLimit('100/m'), { count: 100, unit: 'm' });
  });

  it('refuse other texts, with a suggestion', () => {
    const remedy = 'Write a number and s, m, h, d or month, such as 100/m.';
    assert.deepEqual(messagesOf('', 'many', '100', '-1/m', '1.5/m', '100/w', '1e3/m', '100/m/s'), [
      `A limit is empty. ${remedy}`,
      ...['many', '100', '-1/m', '1.5/m', '100/w', '1e3/m', '100/m/s'].map(
        (text) => `"${text}" is not a limit. ${remedy}`,
      ),
    ]);
    assert.deepEqual(messagesOf('5/M', '5/H', '5/min', '5/minute', '5/Day'), [
      '"5/M" is not a limit. Units are lower case: write 5/m for a minute, or 5/month for a month of 30 days.',
      '"5/H" is not a limit. Did you mean 5/h? The units are s, m, h, d and month.',
      '"5/min" is not a limit. Did you mean 5/m? The units are s, m, h, d and month.',
      '"5/minute" is not a limit. Did you mean 5/m? The units are s, m, h, d and month.',
      '"5/Day" is not a limit. Did you mean 5/d? The units are s, m, h, d and month.',
    ]);
  });

  it('allow something, and no more than 10,000 requests a second', () => {
    assert.deepEqual(messagesOf('0/m'), ['"0/m" allows nothing. To stop a key, disable it.']);
    assert.deepEqual(messagesOf('10000/s', '600000/m', '25920000000/month'), []);
    assert.deepEqual(messagesOf('10001/s'), ['"10001/s" is too large; at most 10000 a second are allowed.']);
    assert.deepEqual(messagesOf('600001/m', '999999999999/month').length, 2);
    assert.deepEqual(messagesOf('9'.repeat(50_000) + '/m').length, 1);
  });

  it('are one of each unit', () => {
    assert.deepEqual(messagesOf('1/m', '2/m', '3/h'), ['1/m and 2/m are two limits a minute. Leave one of them out.']);
  });
});
