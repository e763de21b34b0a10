import assert from 'node:assert/strict';
import { sql } from 'kysely';
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
});
