import assert from 'node:assert/strict';
import { lookUp } from '../../src/keys/authentication/look-up.ts';
import { OPERATOR, principalOf } from '../../src/keys/authorization/principal.ts';
import { isKeysError } from '../../src/keys/basics/errors.ts';
import { digestSecret } from '../../src/keys/secret/secret.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly } from '../support/direct.ts';
import { authenticate, jsonLines, openTestKeys, type TestKeys } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { migratedStore } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';

const SEED = 20_261_122;

describeOnEach('any change of keys', (dialect) => {
  const random = new Random(SEED);
  const steps = dialect === 'sqlite' ? 200 : 80;
  let here: TestKeys;
  let other: TestKeys;
  let fresh: TestKeys;
  /** All secrets ever made. */
  let secrets: string[];
  /** The ids of their keys. */
  let ids: string[];
  before(async () => {
    const database = await migratedStore();
    [here, other, fresh] = [await open(database), await open(database), await open(database)];
    [secrets, ids] = [[], []];
  });
  after(async () => {
    for (const { store } of [here, other, fresh]) await store.close();
  });
  const open = (database: string) => openTestKeys({ database });

  /** The answers of a process that caches keys, for each secret. */
  const remembered = async () => {
    const answers = [];
    for (const secret of secrets) {
      const result = await authenticate(here.keys, secret);
      answers.push('principal' in result ? result.principal.access.permissions() : result.refused);
    }
    return answers;
  };
  /** The answer of a process without a cache. */
  const asked = async () => {
    const answers = [];
    for (const secret of secrets) {
      const found = await lookUp(secret, fresh.store.repository, here.time.now);
      answers.push(found.refused ?? principalOf(found.chain, here.keys.catalog).access.permissions());
    }
    return answers;
  };

  let names = 0;
  const changes: Record<string, (by: TestKeys) => Promise<unknown>> = {
    async create({ keys }) {
      // By a key, if the random one is allowed to.
      const result = secrets.length > 0 ? await authenticate(keys, random.pick(secrets)) : undefined;
      const isAdmin = result && 'principal' in result && result.principal.access.has('API_KEY', 'CREATE_ANY');
      const actor = isAdmin ? result.principal : OPERATOR;
      const input = { name: `Key ${(names += 1)}`, roles: [random.pick(['ADMIN', 'ADMIN', 'ADMIN', 'VIEWER'])] };
      const { key: secret, apiKey: key } = await keys.create(input, actor);
      secrets.push(secret);
      ids.push(key.id);
    },
    async importKey({ keys }) {
      const secret = `imported-secret-with-many-characters-number-${(names += 1)}`;
      await importKeys(keys, jsonLines({ name: `Key ${names}`, roles: ['GUEST'], secret }));
      secrets.push(secret);
      ids.push((await keys.findByName(`Key ${names}`, OPERATOR))!.id);
    },
    delete: ({ keys }) => keys.delete([random.pick(ids)], OPERATOR),
    disable: ({ keys }) => keys.setEnabled(random.pick(ids), false, OPERATOR),
    enable: ({ keys }) => keys.setEnabled(random.pick(ids), true, OPERATOR),
    narrow: ({ keys }) => keys.update(random.pick(ids), { roles: ['GUEST'] }, OPERATOR),
    widen: ({ keys }) => keys.update(random.pick(ids), { roles: ['ADMIN'] }, OPERATOR),
    expire: ({ keys }) => keys.update(random.pick(ids), { expiresIn: '1h' }, OPERATOR),
    async rotate({ keys }) {
      const activate = random.pick(['now', 'on-first-use']);
      secrets.push((await keys.rotate(random.pick(ids), { grace: '1h', activate }, OPERATOR)).key);
    },
    finishRotation: ({ keys }) => keys.finishRotation(random.pick(ids), OPERATOR),
    rollBackRotation: ({ keys }) => keys.rollBackRotation(random.pick(ids), OPERATOR),
    writeActivity: ({ keys }) => keys.finishActivity(),
    async wait() {
      for (const { time } of [here, other, fresh]) time.now += 1_200_000;
    },
    disableByHand: byHand((id) => `update api_keys set disabled_at = 1 where id = '${id}'`),
    deleteByHand: byHand((id) => `delete from api_keys where id = '${id}'`),
    replaceSecretByHand: byHand((id) => `update api_keys set digest = '${digestSecret(id)}' where id = '${id}'`),
    cutOffByHand: byHand((id) => `update api_keys set created_by = null where id = '${id}'`),
    ...(dialect === 'sqlite' && {
      // `replace` fires no delete trigger.
      replaceByHand: byHand(
        (id) => `insert or replace into api_keys (id, name, fields, roles, permissions, public_id, digest, created_at,
          expires_at, disabled_at, managed, short_text, long_text, name_skeleton)
          select 'new ' || id, name, fields, roles, permissions, 'p' || public_id, 'd' || digest, created_at,
          expires_at, disabled_at, managed, short_text, long_text, name_skeleton from api_keys where id = '${id}'`,
      ),
    }),
  };
  function byHand(statement: (id: string) => string) {
    return ({ database }: TestKeys) => changeDirectly(database, statement(random.pick(ids)));
  }

  it(`leaves each secret accepted or refused as without a cache, with seed ${SEED}`, async () => {
    for (let step = 0; step < steps; step += 1) {
      const change = ids.length < 8 || random.chance(0.3) ? 'create' : random.pick(Object.keys(changes));
      const by = random.pick([here, other]);
      try {
        await changes[change]!(by);
      } catch (error) {
        if (!isKeysError(error)) throw error;
      }
      await new Promise(setImmediate);
      const expected = await asked();
      // On PostgreSQL, the notification arrives a moment later.
      if (dialect === 'postgres')
        await until(async () => JSON.stringify(await remembered()) === JSON.stringify(expected));
      assert.deepEqual(await remembered(), expected, `step ${step}: ${change}`);
      // Lasting refusals need no further checks.
      const isOver = (answer: unknown) => answer === 'unknown' || answer === 'expired' || answer === 'rotated';
      secrets = secrets.filter((_, index) => !isOver(expected[index]));
      ids = (await fresh.store.repository.findBy('id', ids)).map(({ id }) => id);
    }
  });
});
