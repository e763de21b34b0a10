import assert from 'node:assert/strict';
import { type Kysely, sql } from 'kysely';
import { readPostgresUrl } from '../../../src/store/postgres-address.ts';
import { openPool } from '../../../src/store/postgres/postgres-pool.ts';
import type { Tables } from '../../../src/store/tables.ts';
import { describeOn } from '../../support/dialects.ts';
import { askPostgres, postgresStore } from '../../support/postgres.ts';
import { startProxy } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

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

describeOn('postgres', 'a connection that was given up', () => {
  it('is not used again, whether it is idle, in a transaction, or still being made', async () => {
    const generation = { number: 0 };
    const { config } = readPostgresUrl(postgresStore());
    const proxy = await startProxy(Number(config.port));
    const db = await openPool({ ...config, port: proxy.port, max: 1 }, generation);
    const ask = (asked: Kysely<Tables> = db) => sql`select`.execute(asked);
    const giveUp = () => void (generation.number += 1);

    for (let count = 0; count < 2; count += 1) await ask();
    assert.equal(proxy.connections(), 1);
    giveUp();
    await db.transaction().execute(async (transaction) => {
      assert.equal(proxy.connections(), 2);
      giveUp();
      await ask(transaction);
    });
    assert.equal(proxy.connections(), 2);
    proxy.block();
    const asked = ask();
    await until(() => proxy.connections() === 3);
    giveUp();
    proxy.unblock();
    for (const question of [asked, ask()]) await question;
    assert.equal(proxy.connections(), 4);
    await db.destroy();
    proxy.close();
  });
});
