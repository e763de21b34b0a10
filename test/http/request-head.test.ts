import assert from 'node:assert/strict';
import { readHead } from '../../src/http/received.ts';

describe('the head of a request', () => {
  it('is read whatever the case of names, with several Accept headers as one', () => {
    const head = ['HOST', 'x:1', 'Accept', 'text/html', 'X-Other', 'a', 'x-other', 'b', 'accept', 'application/json'];
    const there = Object.entries(readHead(head)!).filter(([, value]) => value !== undefined);
    assert.deepEqual(Object.fromEntries(there), { host: 'x:1', accept: 'text/html, application/json' });
  });

  it('is not read where another header that decides is there twice', () => {
    for (const name of ['Host', 'Origin', 'Authorization', 'Content-Type', 'Content-Length', 'Transfer-Encoding'])
      assert.equal(readHead([name, 'a', name.toLowerCase(), 'a']), undefined);
  });
});
