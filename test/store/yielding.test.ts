import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { KeysError } from '../../src/keys/basics/errors.ts';
import { insertKeys, numberedKeys } from '../support/insert-keys.ts';
import { openTestKeys, storedKey, type TestKeys } from '../support/keys.ts';

const KEYS = 1000;

describe('a long change of a store in a file', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys({ asServer: true });
  });
  afterEach(() => test.store.close());

  /** The distinct answers that others read meanwhile, in order, and the number of turns. */
  async function readMeanwhile(work: Promise<unknown>, name: string): Promise<{ seen: boolean[]; turns: number }> {
    const seen: boolean[] = [];
    let turns = 0;
    const done = new AbortController();
    const reading = (async () => {
      while (!done.signal.aborted) {
        const isThere = (await test.keys.findByName(name, OPERATOR)) !== undefined;
        if (isThere !== seen.at(-1)) seen.push(isThere);
        turns += 1;
        await setImmediate();
      }
    })();
    await work.finally(() => done.abort());
    await reading;
    return { seen, turns };
  }

  it(`as a deletion of ${10 * KEYS} keys does so, too`, async () => {
    const parent = storedKey('parent');
    const children = Array.from({ length: 10 * KEYS }, (_, at) => storedKey(`child ${at}`, { createdBy: parent.id }));
    await test.store.repository.write((writer) => writer.insert([parent, ...children]));
    const { seen, turns } = await readMeanwhile(test.keys.delete([parent.id], OPERATOR), 'child 9');
    assert.equal(seen[0], true);
    assert.ok(seen.length <= 2 && turns >= 5, JSON.stringify({ seen, turns }));
  });

  it('as a look through its whole audit log, and at all keys by that, does so, too', async () => {
    await insertKeys(test.keys, numberedKeys(5 * KEYS));
    const { seen, turns } = await readMeanwhile(test.keys.audit.check(), 'Key 1');
    assert.ok(seen[0] && turns >= 10, `${turns}`);
  });

  it('is rolled back as a whole, and the next one begins after it', async () => {
    const failing = test.store.repository.write(async (writer) => {
      for (let key = 0; key < KEYS; key += 100)
        await writer.insert(Array.from({ length: 100 }, (_, at) => storedKey(`key ${key + at}`)));
      throw new KeysError('INPUT_INVALID', 'no more');
    });
    const next = test.keys.create({ name: 'Next', roles: ['GUEST'] }, OPERATOR);
    await assert.rejects(failing, /no more/);
    await next;
    const names = (await test.keys.list({}, OPERATOR)).keys.map(({ name }) => name);
    assert.deepEqual(names, ['Next']);
  });
});
