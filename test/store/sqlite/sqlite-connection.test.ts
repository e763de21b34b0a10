import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { SqliteConnection } from '../../../src/store/sqlite/sqlite-connection.ts';
import { changeDirectly } from '../../support/direct.ts';
import { openTestKeys } from '../../support/keys.ts';
import { tempStore } from '../../support/temp.ts';
import { STORES } from '../../support/features.ts';

/** The number of `synchronous = full` in SQLite, which syncs to disk at the end of each transaction. */
const FULL = 2;

describe('a connection to a store in a file', () => {
  it('waits at the end of each change until it is on the disk, in a new store and in one that was there', async () => {
    const path = tempStore();
    for (const mustExist of [false, true]) {
      const connection = await SqliteConnection.open(path, {
        lockWaitMs: 1000,
        busyTimeoutMs: 0,
        mustExist,
        features: STORES,
      });
      const { rows } = await connection.run((db) => sql`pragma synchronous`.execute(db));
      assert.deepEqual(rows, [{ synchronous: FULL }]);
      await connection.close();
    }
  });

  it('runs nothing hidden in the file that reaches beyond it', async () => {
    const database = tempStore();
    await (await openTestKeys({ asServer: true, database })).store.close();
    await changeDirectly(
      database,
      'create trigger hidden after insert on api_keys begin select * from pragma_database_list; end',
    );
    const { keys, store } = await openTestKeys({ asServer: true, database });
    await assert.rejects(keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR), (error: Error) => {
      assert.match(String(error.cause), /unsafe use of virtual table/);
      return true;
    });
    assert.equal((await keys.list({}, OPERATOR)).keys.length, 0);
    await store.close();
  });
});
