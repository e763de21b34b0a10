import assert from 'node:assert/strict';
import { Usage } from '../../../src/features/usage/usage.ts';
import { writeUses } from '../../../src/keys/authentication/activity.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';

const HOUR = 3_600_000;

describeOnEach('the requests of all keys', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const create = async (name: string) =>
    (await test.keys.create({ name, permissions: ['DOCKER:READ_ANY'] }, OPERATOR)).apiKey.id;
  const use = async (id: string, at: number, requests: number) => {
    const hours = [{ start: at - (at % HOUR), accepted: requests, forbidden: 2, limited: 0, refused: 1 }];
    const uses = { id, uses: requests, lastUsedAt: at, previousLastUsedAt: null, permissions: [], hours };
    await test.store.repository.write((writer) => writeUses(writer, [uses], test.options.listeners), { counts: true });
  };

  it('are counted together, by what they ended in, by hours and by days', async () => {
    const [one, other] = [await create('One'), await create('Other')];
    const now = test.time.now + 30 * HOUR;
    await use(one, now - 26 * HOUR, 5);
    await use(one, now, 10);
    await use(other, now, 1);
    test.time.now = now;
    const start = now - (now % HOUR);
    assert.deepEqual((await test.keys.feature(Usage).ofAll()).periods, [
      { start, accepted: 11, forbidden: 4, limited: 0, refused: 2 },
    ]);
    const days = (await test.keys.feature(Usage).ofAll({ by: 'DAY' })).periods;
    assert.deepEqual(
      days.map(({ accepted }) => accepted),
      [5, 11],
    );
    // Nothing of it is a key's own.
    const own = (await test.keys.feature(Usage).byPeriod(one, { by: 'DAY' })).periods;
    assert.deepEqual(
      own.map(({ accepted }) => accepted),
      [5, 10],
    );
  });
});
