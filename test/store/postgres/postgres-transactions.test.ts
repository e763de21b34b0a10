import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { PostgresConnection } from '../../../src/store/postgres/postgres-connection.ts';
import { describeOn } from '../../support/dialects.ts';
import { changeDirectly, readDirectly } from '../../support/direct.ts';
import { migratedPostgresStore } from '../../support/postgres.ts';
import { STORES } from '../../support/features.ts';

describeOn('postgres', 'a transaction', () => {
  let database: string;
  let connection: PostgresConnection;
  beforeEach(async () => {
    database = await migratedPostgresStore();
    connection = await PostgresConnection.open(database, { lockWaitMs: 60_000, mustExist: true, features: STORES });
    await changeDirectly(database, 'create table notes (note integer)');
  });
  afterEach(() => connection.close());
  const notes = () => readDirectly(database, 'select note from notes');

  for (const state of ['40001', '40P01']) {
    it(`is retried after a serialization failure (${state})`, async () => {
      let calls = 0;
      await connection.write(async (transaction) => {
        calls += 1;
        await sql`insert into notes values (${sql.lit(calls)})`.execute(transaction);
        if (calls < 3) await sql.raw(`do $$ begin raise sqlstate '${state}'; end $$`).execute(transaction);
      });
      assert.deepEqual(await notes(), [{ note: 3 }]);
    });
  }

  it('is retried no longer than it may wait', async () => {
    const hasty = await PostgresConnection.open(database, { lockWaitMs: 500, mustExist: true, features: STORES });
    const attempt = hasty.write((transaction) => sql`do $$ begin raise sqlstate '40001'; end $$`.execute(transaction));
    await assert.rejects(attempt, { code: 'STORE_LOCKED' });
    await hasty.close();
  });

  it('waits for its turn as long as a change may, and asks again for the lock', async () => {
    const patient = await PostgresConnection.open(database, {
      lockWaitMs: 50,
      writeWaitMs: 60_000,
      mustExist: true,
      features: STORES,
    });
    const hasty = await PostgresConnection.open(database, { lockWaitMs: 200, mustExist: true, features: STORES });
    const [held, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holder = connection.write(async () => {
      held.resolve();
      await free.promise;
    });
    await held.promise;
    const first = patient.write(async () => 'made');
    await assert.rejects(Promise.race([first, hasty.write(async () => {})]), { code: 'STORE_LOCKED' });
    free.resolve();
    await holder;
    assert.equal(await first, 'made');
    await patient.close();
    await hasty.close();
  });

  it('is not made twice where the connection is lost during the commit', async () => {
    await changeDirectly(
      database,
      `create function cut_off() returns trigger language plpgsql as
        'begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); return null; end'`,
      'create constraint trigger cut_off after insert on notes deferrable initially deferred for each row execute function cut_off()',
    );
    let calls = 0;
    const attempt = connection.write(async (transaction) => {
      calls += 1;
      await sql`insert into notes values (1)`.execute(transaction);
    });
    await assert.rejects(attempt, { code: 'STORE_UNAVAILABLE', message: /was cut off by its database server/ });
    assert.equal(calls, 1);
    await connection.write(async () => {});
  });

  it('waits for earlier ones, whose queries never wait for it', async () => {
    const done: string[] = [];
    const first = connection.write(async (transaction) => {
      await Promise.all(Array.from({ length: 20 }, () => connection.run((db) => sql`select 1`.execute(db))));
      await sql`select 1`.execute(transaction);
      done.push('first');
    });
    const others = Array.from({ length: 20 }, () => connection.write(async () => void done.push('later')));
    await Promise.all([first, ...others]);
    assert.deepEqual([done[0], done.length], ['first', 21]);
  });
});
