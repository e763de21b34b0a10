import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { fillStore } from '../support/big-store.ts';
import { describeOnEach } from '../support/dialects.ts';
import { finished, runCli, startCli } from '../support/process.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const CREATE = 'mutation ($name: String!) { createApiKey(input: { name: $name, roles: [GUEST] }) { key } }';

describeOnEach('a store under a running server', (dialect) => {
  let store: string;
  let server: ServeProcess;
  let admin: string;
  let doomed: { id: string; secret: string };
  const folder = tempFolder();

  before(async () => {
    store = tempStore();
    await fillStore(store, 3000);
    await withKeys({ database: store }, async (keys) => {
      admin = (await keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR)).key;
      const made = await keys.create({ name: 'Doomed', roles: ['GUEST'] }, OPERATOR);
      doomed = { id: made.apiKey.id, secret: made.key };
    });
    server = await startServe(store);
  });
  after(() => server.stop());
  const statusOf = async (secret: string) => (await query(server.url, secret, '{ me { name } }')).status;

  it('is backed up as it is at one moment, while keys are made by the server and by commands', async () => {
    const path = join(folder, `${dialect}.sqlite`);
    const child = startCli(['backup', path, '--database', store, '--json']);
    const ended = finished(child);
    let made = 0;
    while (child.exitCode === null && child.signalCode === null) {
      const { status, body } = await query(server.url, admin, CREATE, { name: `During ${made}` });
      assert.deepEqual([status, body.errors], [200, undefined]);
      made += 1;
    }
    const { code, stdout } = await ended;
    assert.equal(code, 0, stdout);
    const { keys, auditEntries, head } = JSON.parse(stdout) as { keys: number; auditEntries: number; head: string };
    assert.ok(keys >= 3002 && keys <= 3002 + made, String(keys));
    assert.equal(auditEntries, keys, 'each key has the entry of its creation');
    assert.equal((await runCli(['apikey', 'log', '--verify', '--head', head, '--database', store])).code, 0);
  });

  it('is restored meanwhile: the server takes what comes back, and refuses what goes, from the next request on', async () => {
    const path = join(folder, `${dialect}-2.sqlite`);
    assert.equal((await runCli(['backup', path, '--database', store])).code, 0);
    const created = await query(server.url, admin, CREATE, { name: 'Created since' });
    const since = (created.body.data as { createApiKey: { key: string } }).createApiKey.key;
    await withKeys({ database: store }, (keys) => keys.delete([doomed.id], OPERATOR));
    assert.deepEqual([await statusOf(since), await statusOf(doomed.secret), await statusOf(admin)], [200, 401, 200]);
    const { code, stderr } = await runCli([
      'restore',
      path,
      '--yes',
      '--restore-revoked',
      'Doomed',
      '--database',
      store,
    ]);
    assert.equal(code, 0, stderr);
    assert.deepEqual([await statusOf(since), await statusOf(doomed.secret), await statusOf(admin)], [401, 200, 200]);
  });

  if (dialect === 'postgres') return;

  it('is replaced without a comparison: the server uses the new one, and loses nothing that is changed then', async () => {
    const path = join(folder, 'sqlite-3.sqlite');
    assert.equal((await runCli(['backup', path, '--database', store])).code, 0);
    const created = await query(server.url, admin, CREATE, { name: 'Created again' });
    const since = (created.body.data as { createApiKey: { key: string } }).createApiKey.key;
    assert.equal(await statusOf(since), 200);
    const args = ['restore', path, '--yes', '--force', '--database', store];
    const { code, stderr } = await runCli(args);
    assert.equal(code, 0, stderr);
    assert.deepEqual([await statusOf(since), await statusOf(admin)], [401, 200]);
    const after = await query(server.url, admin, CREATE, { name: 'After it' });
    assert.equal(after.body.errors, undefined);
    const listed = await runCli(['apikey', 'show', 'After it', '--database', store]);
    assert.equal(listed.code, 0, listed.stderr);
    assert.equal((await runCli(['apikey', 'log', '--verify', '--database', store])).code, 0);
    assert.ok(readdirSync(dirname(store)).some((name) => name.includes('.replaced-')));
  });

  it('is replaced where it is damaged under the server, which answers again then', async () => {
    const path = join(folder, 'sqlite-4.sqlite');
    assert.equal((await runCli(['backup', path, '--database', store])).code, 0);
    writeFileSync(store, 'x'.repeat(100_000));
    const args = ['restore', path, '--yes', '--force', '--database', store];
    const { code, stderr } = await runCli(args);
    assert.equal(code, 0, stderr);
    assert.equal(await statusOf(admin), 200);
    assert.equal((await runCli(['apikey', 'log', '--verify', '--database', store])).code, 0);
  });
});
