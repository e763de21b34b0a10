import assert from 'node:assert/strict';
import { RecentlyUsed } from '../../src/graphql/index.ts';

describe('the cache of recently used values', () => {
  const kept = (cache: RecentlyUsed<number>) => ['a', 'b', 'c', 'd', 'e'].filter((key) => cache.has(key)).join('');

  it('drops the value that was not used for longest, where there are too many', () => {
    const cache = new RecentlyUsed<number>(3);
    for (const key of 'abc') cache.set(key, 1);
    assert.equal(cache.get('a'), 1);
    assert.equal(cache.has('b'), true);
    cache.set('d', 1);
    assert.equal(kept(cache), 'acd');
    cache.set('c', 2);
    cache.set('e', 1);
    assert.equal(kept(cache), 'cde');
    assert.deepEqual([cache.get('c'), cache.get('a')], [2, undefined]);
  });

  it('drops as many as needed for a value, but does not keep one that alone is too large', () => {
    const cache = new RecentlyUsed<number>(9, 10);
    for (const key of 'abc') cache.set(key, 1, 3);
    cache.set('d', 1, 5);
    assert.equal(kept(cache), 'cd');
    cache.set('c', 2, 5);
    assert.equal(kept(cache), 'cd');
    assert.equal(cache.delete('d'), true);
    assert.equal(cache.delete('d'), false);
    cache.set('a', 1, 5);
    assert.equal(kept(cache), 'ac');
    cache.set('c', 1, 11);
    assert.equal(kept(cache), 'a');
  });
});
