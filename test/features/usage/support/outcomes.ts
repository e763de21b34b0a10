import assert from 'node:assert/strict';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { OUTCOMES } from '../../../../src/keys/key/use.ts';
import type { CreatedKey } from '../../../../src/keys/service/management.ts';
import { Usage } from '../../../../src/features/usage/usage.ts';
import type { TestKeys } from '../../../support/keys.ts';

/** The permission that each door requires. */
export const PERMISSION = 'DASHBOARD:READ_ANY';

/** How a key's requests ended: accepted, forbidden, limited, refused. */
export async function outcomesOf({ keys }: Pick<TestKeys, 'keys'>, { apiKey: key }: CreatedKey): Promise<number[]> {
  await keys.finishActivity();
  const [hour] = (await keys.feature(Usage).byPeriod(key.id)).periods;
  return hour ? OUTCOMES.map((outcome) => hour[outcome]) : [];
}

/** A way to send a request with a secret that needs `DASHBOARD:READ_ANY`. */
export interface Door {
  test: TestKeys;
  send(secret: string): Promise<number>;
  stop(): Promise<void>;
}

/** Tests that a door counts how requests end. */
export function describeOutcomes(name: string, open: () => Promise<Door>): void {
  describe(`how requests end, counted by ${name}`, () => {
    let door: Door;
    before(async () => {
      door = await open();
    });
    after(() => door.stop());
    let count = 0;
    const create = (fields: object = {}) => {
      count += 1;
      return door.test.keys.create({ name: `Key ${count}`, permissions: [PERMISSION], ...fields }, OPERATOR);
    };
    const sendTo = async (created: CreatedKey, times = 1) => {
      for (let time = 0; time < times; time += 1) await door.send(created.key);
      return outcomesOf(door.test, created);
    };

    it('is accepted', async () => assert.deepEqual(await sendTo(await create(), 3), [3, 0, 0, 0]));

    it('is forbidden without a permission, and from elsewhere', async () => {
      assert.deepEqual(await sendTo(await create({ permissions: ['ME:READ_OWN'] }), 2), [0, 2, 0, 0]);
      assert.deepEqual(await sendTo(await create({ allowFrom: ['10.0.0.0/8'] })), [0, 1, 0, 0]);
    });

    it('is limited beyond a limit', async () =>
      assert.deepEqual(await sendTo(await create({ limits: ['2/h'] }), 5), [2, 0, 3, 0]));

    it('is refused where the key is disabled', async () => {
      const created = await create();
      assert.deepEqual(await sendTo(created), [1, 0, 0, 0]);
      await door.test.keys.setEnabled(created.apiKey.id, false, OPERATOR);
      assert.deepEqual(await sendTo(created, 2), [1, 0, 0, 2]);
    });
  });
}
