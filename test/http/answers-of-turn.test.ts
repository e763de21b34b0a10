import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { AnswersOfTurn } from '../../src/http/adapters.ts';
import { yieldToEventLoop } from '../../src/keys/basics/turns.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService } from '../support/server.ts';

describe('the answers of a turn of the event loop', () => {
  let now: number;
  let answers: AnswersOfTurn;
  let sent: number[];
  beforeEach(() => {
    now = 0;
    answers = new AnswersOfTurn(() => now);
    sent = [];
  });

  const response = () => new ServerResponse(new IncomingMessage(new Socket()));
  const make = (count: number) => {
    for (let number = 1; number <= count; number += 1) answers.add(response(), () => sent.push(number));
  };
  /** A turn with so many that the next one counts as busy. */
  const beBusy = async () => {
    make(5);
    await setImmediate();
    sent = [];
  };

  it('are sent at once while there are few a turn', async () => {
    for (let turn = 1; turn <= 3; turn += 1) {
      make(4);
      assert.equal(sent.length, 4 * turn);
      await setImmediate();
    }
  });

  it('are sent in their order at the end of the turn once there are more', async () => {
    await beBusy();
    make(3);
    assert.deepEqual(sent, []);
    await setImmediate();
    assert.deepEqual(sent, [1, 2, 3]);
    make(1);
    assert.deepEqual(sent, [1, 2, 3, 1]);
  });

  it('are held for those who send them themselves', async () => {
    assert.equal(answers.hold('at once'), 'at once');
    await beBusy();
    const held = answers.hold('an answer');
    assert.ok(held instanceof Promise);
    void held.then(() => sent.push(1));
    answers.add(response(), () => sent.push(2));
    await setImmediate();
    assert.deepEqual(new Set(sent), new Set([1, 2]));
    assert.equal(await held, 'an answer');
  });

  it('wait for one another for a millisecond at most', async () => {
    await beBusy();
    make(1);
    now += 0.9;
    make(1);
    assert.deepEqual(sent, []);
    now += 0.1;
    make(1);
    assert.deepEqual(sent, [1, 1, 1]);
    make(1);
    assert.deepEqual(sent, [1, 1, 1]);
    await setImmediate();
    assert.deepEqual(sent, [1, 1, 1, 1]);
  });

  it('are sent before work goes on that lets others have a turn', async () => {
    await beBusy();
    const working = yieldToEventLoop().then(() => assert.deepEqual(sent, [1, 2]));
    make(2);
    await working;
  });

  it('are not sent to clients that have gone, which keeps none from the others', async () => {
    await beBusy();
    const [gone, failing] = [response(), response()];
    answers.add(gone, () => sent.push(0));
    answers.add(failing, () => {
      throw new Error('An invalid header.');
    });
    make(1);
    gone.destroy();
    await setImmediate();
    assert.deepEqual([sent, failing.destroyed], [[1], true]);
  });

  it('are those of their requests, on a busy server', async () => {
    const test = await startTestService();
    const { secret } = await createPrincipal(test.keys, { name: 'Caller', roles: ['GUEST'] });
    const ask = async (number: number) => {
      const { body } = await query(test.url, secret, `{ n${number}: online }`);
      assert.deepEqual(body, { data: { [`n${number}`]: true } });
      const response = await fetch(`${test.url}/${number}`);
      assert.equal(response.status, 404);
    };
    await Promise.all(Array.from({ length: 300 }, (_, number) => ask(number)));
    await test.stop();
  });
});
