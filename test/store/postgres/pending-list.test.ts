import assert from 'node:assert/strict';
import { type Kysely, sql } from 'kysely';
import { openConnection } from '../../../src/store/open.ts';
import type { Connection } from '../../../src/store/connection.ts';
import type { Tables } from '../../../src/store/tables.ts';
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

  it('is little for an import as well, so that no change beside it has to take up what that puts off', async () => {
    const limits: unknown[] = [];
    const note = async (db: Kysely<Tables>) => void limits.push(...(await limit.execute(db)).rows);
    await connection.write(note, { before: async (db) => (await note(db), async () => {}) });
    assert.deepEqual(limits, [{ limit: '64kB' }, { limit: '64kB' }]);
  });
});
