import assert from 'node:assert/strict';
import { type Kysely, sql } from 'kysely';
import { readPostgresUrl } from '../../../src/store/postgres/postgres-address.ts';
import { openPool } from '../../../src/store/postgres/postgres-pool.ts';
import type { Tables } from '../../../src/store/tables.ts';
import { describeOn } from '../../support/dialects.ts';
import { askPostgres, postgresStore } from '../../support/postgres.ts';

describeOn('postgres', 'a connection that has not answered in time', () => {
  let database: string;
  let db: Kysely<Tables>;
  let pid: unknown;
  const ask = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)).rows[0]!.pid;
  beforeEach(async () => {
    database = postgresStore();
    db = await openPool({ ...readPostgresUrl(database).config, max: 1, query_timeout: 1000 });
    pid = await ask();
  });
  afterEach(async () => {
    await askPostgres(database, `select pg_terminate_backend(${String(pid)})`);
    await db.destroy();
  });
  const sleep = sql`select pg_sleep(600)`;

  for (const [what, wait] of [
    ['a question', () => sleep.execute(db)],
    ['a transaction', () => db.transaction().execute((transaction) => sleep.execute(transaction))],
  ] as const) {
    it(`is given up after ${what}: the next one has another`, async () => {
      await assert.rejects(wait(), { message: 'Query read timeout' });
      assert.notEqual(await ask(), pid);
    });
  }
});
