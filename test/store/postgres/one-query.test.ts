import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { readPostgresUrl } from '../../../src/store/postgres-address.ts';
import { openStore } from '../../../src/store/open.ts';
import { describeOn } from '../../support/dialects.ts';
import { readDirectly } from '../../support/direct.ts';
import { migratedStore } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

describeOn('postgres', 'a store that listens', () => {
  it('sends one query at a time over a connection, also while it is closed', async () => {
    const warnings: string[] = [];
    const warned = ({ message }: Error) => void warnings.push(message);
    process.on('warning', warned);
    const database = await migratedStore();
    const store = await openStore({ database });
    await until(async () => store.repository.revision() !== undefined);
    const { schema, config } = readPostgresUrl(database);
    const other = new Client(config);
    await other.connect();
    try {
      await other.query(`begin; lock table "${schema}".followers in access exclusive mode`);
      const waiting = `select 1 from pg_locks where not granted and relation = '"${schema}".followers'::regclass`;
      await until(async () => (await readDirectly(database, waiting)).length > 0);
      // A change to confirm, while the heartbeat waits.
      const before = store.repository.revision();
      const change = JSON.stringify({ schema, keys: [randomUUID()], number: 9 });
      await readDirectly(database, `select pg_notify('svc_api_changed_keys', '${change}')`);
      await until(() => store.repository.revision() !== before);
      const closed = store.close();
      await other.query('rollback');
      await closed;
    } finally {
      await other.end();
      process.off('warning', warned);
    }
    assert.deepEqual(warnings, []);
  });
});
