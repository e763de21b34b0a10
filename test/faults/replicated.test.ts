import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { runCli } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { namesIn } from '../support/stored.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const CHILD = fileURLToPath(new URL('../support/replicator-child.ts', import.meta.url));
const CREATE = 'mutation ($name: String!) { createApiKey(input: { name: $name, roles: [GUEST] }) { key } }';

describe('a store that another program reads all the time, and writes back, as Litestream does', () => {
  it('loses nothing, is checked and backed up meanwhile, and what that program has can be restored', async () => {
    const store = tempStore();
    const replica = join(tempFolder(), 'replica.sqlite');
    let admin = '';
    await withKeys({ database: store }, async (keys) => {
      admin = (await keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR)).key;
    });
    const server = await startServe(store);
    const child = spawn(process.execPath, [CHILD, store, replica], { stdio: ['pipe', 'pipe', 'inherit'] });
    try {
      await once(child.stdout, 'data');
      const names = Array.from({ length: 40 }, (_, index) => `Key ${index}`);
      for (const name of names) {
        const { body } = await query(server.url, admin, CREATE, { name });
        assert.equal(body.errors, undefined, JSON.stringify(body));
        const secret = (body.data as { createApiKey: { key: string } }).createApiKey.key;
        assert.equal((await query(server.url, secret, '{ me { name } }')).status, 200);
      }
      const deleted = await runCli(['apikey', 'delete', 'Key 7', '--database', store]);
      assert.equal(deleted.code, 0, deleted.stderr);
      const backup = join(tempFolder(), 'backup.sqlite');
      for (const args of [['backup', backup], ['doctor'], ['apikey', 'log', '--verify']]) {
        const { code, stdout, stderr } = await runCli([...args, '--database', store]);
        assert.equal(code, 0, stdout + stderr);
      }
      child.stdin.end();
      await once(child, 'exit');
      chmodSync(replica, 0o600);
      await runCli(['apikey', 'create', '--name', 'Later', '--roles', 'GUEST', '--database', store]);
      const { code, stderr } = await runCli(['restore', replica, '--yes', '--database', store]);
      assert.equal(code, 0, stderr);
      const expected = ['Admin', ...names.filter((name) => name !== 'Key 7')].toSorted();
      assert.deepEqual(await namesIn(store), expected);
      assert.equal((await query(server.url, admin, '{ me { name } }')).status, 200);
    } finally {
      child.kill();
      await server.stop();
    }
  });
});
