import assert from 'node:assert/strict';
import { memoized } from '../../src/http/memoized.ts';

describe('a value computed from a text', () => {
  let asked: string[];
  const upperCase = (max?: number) =>
    memoized((text) => {
      asked.push(text);
      if (text === '') throw new Error('Nothing to compute.');
      return text.toUpperCase();
    }, max);
  beforeEach(() => {
    asked = [];
  });

  it('is computed once for each', () => {
    const compute = upperCase();
    assert.deepEqual(['a', 'b', 'a', 'b'].map(compute), ['A', 'B', 'A', 'B']);
    assert.deepEqual(asked, ['a', 'b']);
  });

  it('is kept where it is false', () => {
    const isLong = memoized((text) => asked.push(text) > 5);
    assert.deepEqual([isLong('a'), isLong('a'), asked.length], [false, false, 1]);
  });

  it('is not kept where it fails', () => {
    const compute = upperCase();
    assert.throws(() => compute(''), /Nothing/);
    assert.throws(() => compute(''), /Nothing/);
    assert.deepEqual(asked, ['', '']);
  });

  it('is forgotten once there are too many', () => {
    const compute = upperCase(2);
    for (const text of ['a', 'b', 'c', 'c', 'a']) compute(text);
    assert.deepEqual(asked, ['a', 'b', 'c', 'a']);
  });
});
