import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { BUDGET, RequestBudget, Turns, writeData } from '../../src/graphql/execution/budget.ts';

describe('the data of an answer', () => {
  const LONG = 'x'.repeat(60_000);

  /**
   * The response text when the turn of the request is over and others wait, and whether the others ran before it was
   * written.
   */
  async function write(data: Record<string, unknown>): Promise<{ text: string; hasWaited: boolean }> {
    const turns = new Turns(0);
    turns.begin();
    const others = turns.next();
    const order: string[] = [];
    const written = Promise.resolve(writeData(data, new RequestBudget(BUDGET, turns))).finally(() =>
      order.push('data'),
    );
    await Promise.all([others.then(() => order.push('others')), written]);
    await setImmediate();
    return { text: await written, hasWaited: order[0] === 'others' };
  }

  it('is written at once when it is complete, lest it stays in memory while others compute', async () => {
    for (const data of [{ long: LONG }, { me: { id: '1' }, online: true }]) {
      const { text, hasWaited } = await write(data);
      assert.equal(text, JSON.stringify(data));
      assert.ok(!hasWaited);
    }
  });

  it('is written in pieces where it is long', async () => {
    const data = { one: LONG, two: LONG, three: [LONG] };
    const { text, hasWaited } = await write(data);
    assert.equal(text, JSON.stringify(data));
    assert.ok(hasWaited);
  });
});
