import assert from 'node:assert/strict';
import { type AnsweredForm, RecentForms } from '../../../src/features/console/recent-forms.ts';

describe('the answers of forms that were sent not long ago', () => {
  let now: number;
  let forms: RecentForms;
  let works: number;
  beforeEach(() => {
    now = 0;
    works = 0;
    forms = new RecentForms(() => now);
  });

  const answered = (text: string, isDone = true): AnsweredForm => ({
    answer: { status: 200, headers: {}, text },
    isDone,
  });
  const send = async (id: string, text = id, isDone = true) => {
    const answer = await forms.once(id, async () => {
      works += 1;
      return answered(text, isDone);
    });
    return answer?.text;
  };

  it('are kept for a minute, where something was done', async () => {
    assert.deepEqual([await send('a', 'one'), await send('a', 'two')], ['one', 'one']);
    assert.deepEqual([await send('b', 'one', false), await send('b', 'two')], ['one', 'two']);
    now += 59_999;
    assert.equal(await send('a', 'three'), 'one');
    now += 1;
    assert.equal(await send('a', 'three'), 'three');
  });

  it('are the same for all requests during the work, however it ends', async () => {
    const work = Promise.withResolvers<AnsweredForm>();
    const waiting = [1, 2, 3].map(() => forms.once('a', () => work.promise));
    work.reject(new Error('lost'));
    for (const { status } of await Promise.allSettled(waiting)) assert.equal(status, 'rejected');
    assert.equal(await send('a', 'again'), 'again');
    assert.equal(works, 1);
  });

  it('are at most 500: the oldest ones make room', async () => {
    for (let count = 0; count <= 500; count += 1) await send(`${count}`);
    assert.deepEqual([await send('1', 'new'), await send('0', 'new')], ['1', 'new']);
  });

  it('have at most 8 million characters together', async () => {
    const long = 'x'.repeat(3_000_000);
    for (const id of ['a', 'b', 'c']) await send(id, long);
    assert.deepEqual([await send('b', 'new'), await send('c', 'new'), await send('a', 'new')], [long, long, 'new']);
    await send('d', 'x'.repeat(8_000_001));
    assert.equal(await send('d', 'new'), 'new');
  });
});
