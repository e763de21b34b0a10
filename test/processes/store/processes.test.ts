import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { authenticate, openTestKeys } from '../../support/keys.ts';
import { type Finished, runCli } from '../../support/process.ts';
import { tempStore } from '../../support/temp.ts';

const create = (database: string, name: string) =>
  runCli(['apikey', '--create', '--name', name, '--roles', 'GUEST', '--json', '--database', database]);
const answer = ({ stdout }: Finished) => JSON.parse(stdout) as { key?: string; code?: string };

describe('processes that write at once', () => {
  it('create a missing store and 6 keys in it, without failures', async () => {
    const database = tempStore();
    const names = Array.from({ length: 6 }, (_, index) => `Key ${index}`);
    const results = await Promise.all(names.map((name) => create(database, name)));
    assert.deepEqual(
      results.filter(({ code }) => code !== 0),
      [],
    );
    const { keys, store } = await openTestKeys({ asServer: true, database });
    for (const result of results) assert.ok('principal' in (await authenticate(keys, answer(result).key!)));
    assert.deepEqual((await keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted(), names.toSorted());
    await store.close();
  });

  it('and 4 of them want one name: one gets it', async () => {
    const database = tempStore();
    const results = await Promise.all(Array.from({ length: 4 }, () => create(database, 'CI')));
    const [winners, losers] = [results.filter(({ code }) => code === 0), results.filter(({ code }) => code !== 0)];
    assert.equal(winners.length, 1);
    assert.deepEqual(
      losers.map((result) => [result.code, answer(result).code]),
      Array.from({ length: 3 }, () => [1, 'NAME_TAKEN']),
    );
    const { keys, store } = await openTestKeys({ asServer: true, database });
    assert.ok('principal' in (await authenticate(keys, answer(winners[0]!).key!)));
    assert.equal((await keys.list({}, OPERATOR)).keys.length, 1);
    await store.close();
  });

  it('see what the others did from their next query on', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const { key: secret = '' } = answer(await create(store.location, 'CI'));
    assert.ok('principal' in (await authenticate(keys, secret)));
    await runCli(['apikey', '--delete', '--name', 'CI', '--database', store.location]);
    assert.ok('refused' in (await authenticate(keys, secret)));
    await store.close();
  });
});
