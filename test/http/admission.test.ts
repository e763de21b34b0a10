import assert from 'node:assert/strict';
import { Admission } from '../../src/http/admission.ts';
import { RequestRefused } from '../../src/http/replies.ts';

const RUNNING = 16;
const MEBIBYTE = 1024 * 1024;

/** In milliseconds; longer than a test can take. */
const FOREVER = 600_000;

describe('the admission of large requests', () => {
  let admission: Admission;
  /** The work that has started, in order, with functions that end it. */
  let begun: { name: string; end: () => void }[];
  /** The refused work. */
  let refused: { name: string; error: unknown }[];
  beforeEach(() => {
    [admission, begun, refused] = [new Admission(FOREVER), [], []];
  });

  /** @returns the callback for a disconnected client; undefined if there is none */
  function send(name: string, keyId = 'a', bytes = 100): { gone: (() => void) | undefined } {
    const client: { gone: (() => void) | undefined } = { gone: undefined };
    const onClientGone = (listener: () => void) => {
      client.gone = listener;
      return () => void (client.gone = undefined);
    };
    admission.enter({ keyId, bytes, onClientGone }).then(
      (end) => void begun.push({ name, end }),
      (error: unknown) => void refused.push({ name, error }),
    );
    return client;
  }

  /** Ends some of the work, one after the other. @returns the names of what starts then */
  async function endSome(count: number): Promise<string[]> {
    await settled();
    const before = begun.length;
    for (const { end } of begun.splice(0, count)) {
      end();
      await settled();
    }
    return begun.slice(before - count).map(({ name }) => name);
  }

  const settled = () => new Promise(setImmediate);
  const fill = () => {
    for (let index = 0; index < RUNNING; index += 1) send(`first ${index}`);
  };

  it('begins so many at once, and one for each that ends', async () => {
    fill();
    for (const name of ['b', 'c']) send(name);
    await settled();
    assert.equal(begun.length, RUNNING);
    assert.deepEqual(await endSome(1), ['b']);
    assert.deepEqual(await endSome(3), ['c']);
    fill();
    await settled();
    assert.equal(begun.length, RUNNING);
  });

  it('lets keys take turns, however many one of them sends', async () => {
    fill();
    for (const name of ['a1', 'a2', 'a3', 'a4']) send(name, 'a');
    for (const name of ['b1', 'b2']) send(name, 'b');
    send('c1', 'c');
    assert.deepEqual(await endSome(7), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  it('refuses one that waited too long, with what to do', async () => {
    admission = new Admission(1);
    fill();
    send('late');
    while (refused.length === 0) await settled();
    const { name, error } = refused[0]!;
    assert.equal(name, 'late');
    assert.ok(error instanceof RequestRefused);
    assert.deepEqual([error.status, error.code, error.headers], [503, 'OVERLOADED', { 'Retry-After': '5' }]);
    assert.equal(error.message, 'Too many large requests are waiting. Try again in 5 seconds, or ask for less.');
    // No other request takes its place.
    assert.deepEqual(await endSome(1), []);
    send('next');
    await settled();
    assert.equal(begun.at(-1)!.name, 'next');
  });

  it('forgets one whose client has gone, and listens for that only while it waits', async () => {
    fill();
    const [gone, stays] = [send('gone'), send('stays')];
    gone.gone!();
    assert.deepEqual(await endSome(1), ['stays']);
    assert.equal(stays.gone, undefined);
    assert.deepEqual(
      refused.map(({ name }) => name),
      ['gone'],
    );
  });

  it('refuses what came last of the key that takes most memory, once all that wait take too much', async () => {
    fill();
    for (let index = 0; index < 63; index += 1) send(`large ${index}`, 'a', MEBIBYTE);
    send('other', 'b', MEBIBYTE);
    await settled();
    assert.deepEqual(
      refused.map(({ name }) => name),
      ['large 62'],
    );
    send('one more', 'a', MEBIBYTE);
    await settled();
    assert.equal(refused.at(-1)!.name, 'one more');
  });
});
