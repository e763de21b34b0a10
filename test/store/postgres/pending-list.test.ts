import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { withPendingList } from '../../../src/store/insert-rows.ts';
import { openConnection } from '../../../src/store/open.ts';
import type { Connection } from '../../../src/store/connection.ts';
import { describeOn } from '../../support/dialects.ts';
import { migratedStore } from '../../support/temp.ts';

describeOn('postgres', 'what the search index puts off', () => {
  let connection: Connection;
  before(async () => {
    connection = await openConnection({ database: await migratedStore() });
  });
  after(() => connection.close());
  const limit = sql<{ limit: string }>`select current_setting('gin_pending_list_limit') as limit`;

  it('is little for a change, which takes it up by itself', async () => {
    const { rows } = await connection.write((db) => limit.execute(db));
    assert.deepEqual(rows, [{ limit: '64kB' }]);
  });

  it('is a lot for an import, of which no reader waits for a lock', async () => {
    await connection.write((db) =>
      withPendingList(db, async () => {
        assert.deepEqual((await limit.execute(db)).rows, [{ limit: '1000000kB' }]);
        const { rows } = await sql<{ relation: string }>`select relation::regclass::text as relation from pg_locks
          where pid = pg_backend_pid() and mode in ('AccessExclusiveLock', 'ExclusiveLock') and relation is not null`.execute(
          db,
        );
        assert.deepEqual(rows, []);
      }),
    );
  });
});
