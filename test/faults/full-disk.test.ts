import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { mountSmallDisk, type SmallDisk } from '../support/full-disk.ts';
import { openTestKeys, storedKey } from '../support/keys.ts';
import { runCli } from '../support/process.ts';
import { skipUnlessCI } from '../support/skip.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { until } from '../support/until.ts';

const NAMES = Array.from({ length: 20 }, (_, index) => `Key ${index}`);

const MANY = 300;
const MEBIBYTE = 1 << 20;

describe('a store on a full disk', () => {
  let disk: SmallDisk;
  let path = '';
  let admin = '';
  let ids: Map<string, string>;
  let server: ServeProcess | undefined;

  beforeEach(async function () {
    const mounted = mountSmallDisk(48);
    if (!mounted) skipUnlessCI(this, 'a small disk could not be mounted');
    disk = mounted;
    path = join(disk.folder, 'keys.sqlite');
    const { keys, store } = await openTestKeys({ database: path, time: { now: Date.now() } });
    admin = (await keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR)).key;
    ids = new Map();
    for (const name of NAMES) ids.set(name, (await keys.create({ name, roles: ['GUEST'] }, OPERATOR)).apiKey.id);
    await store.close();
  });
  afterEach(async () => {
    await server?.stop('SIGKILL');
    server = undefined;
    disk?.unmount();
  });

  const run = async (...args: string[]) => {
    const { code, stdout } = await runCli(['apikey', ...args, '--json', '--database', path]);
    const { code: reason, error } = JSON.parse(stdout) as { code?: string; error?: string };
    return { exit: code, code: reason, error };
  };
  const create = async () => {
    const { exit, code } = await run('create', '--name', 'New', '--description', 'x'.repeat(900), '--roles', 'GUEST');
    return [exit, code];
  };

  const reserve = () => statSync(`${path}-reserve`, { throwIfNoEntry: false })?.size ?? 0;

  it('takes no new key, and deletes and disables each key by commands, until there is room again', async () => {
    const reserved = reserve();
    disk.fill();
    for (const [index, name] of NAMES.entries()) {
      assert.deepEqual(await create(), [1, 'STORE_FULL'], `before change ${index}`);
      const { exit, error } = await run(...(index % 2 === 0 ? ['delete', '--name', name] : ['disable', name]));
      assert.deepEqual([exit, error], [0, undefined], `change ${index}`);
    }
    disk.empty();
    assert.deepEqual(await create(), [0, undefined]);
    assert.ok(reserve() >= reserved, `${reserve()} of ${reserved}`);
    const { keys, store } = await openTestKeys({ database: path });
    const { length } = (await keys.list({}, OPERATOR)).keys.filter(({ disabledAt }) => disabledAt === null);
    assert.equal(length, 2);
    assert.ok('entries' in (await keys.audit.check()).verification);
    await store.close();
  });

  it('deletes and disables each key over GraphQL, and makes its reserve again when there is room', async () => {
    server = await startServe(path);
    const reserved = reserve();
    const { url } = server;
    assert.equal((await query(url, admin, '{ me { name } }')).status, 200);
    disk.fill();
    // Until free space inside the store's files is used up, too.
    const creation = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id } } }';
    for (let full = false, count = 0; !full; count += 1) {
      const input = { name: `More ${count}`, description: 'x'.repeat(900), roles: ['GUEST'] };
      full = (await query(url, admin, creation, { input })).body.errors !== undefined;
    }
    for (const [index, id] of [...ids.values()].entries()) {
      const mutation =
        index % 2 === 0 ? 'deleteApiKeys(ids: [$id]) { deleted }' : 'setApiKeyEnabled(id: $id, enabled: false) { id }';
      const { body } = await query(url, admin, `mutation ($id: ID!) { ${mutation} }`, { id });
      assert.equal(body.errors, undefined, JSON.stringify(body));
    }
    disk.empty();
    await until(() => reserve() >= reserved);
    const { keys, store } = await openTestKeys({ database: path });
    for (const [name, id] of ids) assert.notEqual((await keys.findById(id, OPERATOR))?.disabledAt, null, name);
    await store.close();
  });

  it(`deletes ${MANY} keys while another program reads, and the -wal shrinks afterwards`, async () => {
    const { keys, store } = await openTestKeys({ database: path, asServer: true });
    const many = Array.from({ length: MANY }, () => storedKey(randomUUID(), { createdAt: Date.UTC(2029, 0, 1) }));
    await store.repository.write((writer) => writer.insert(many));
    await until(() => reserve() > 10 * MEBIBYTE);
    const reader = new Database(path, { readonly: true });
    reader.exec('begin; select count(*) from api_keys');
    disk.fill();
    for (const { id } of many) await keys.delete([id], OPERATOR);
    reader.close();
    disk.empty();
    for (const name of ['A', 'B']) await keys.create({ name, roles: ['GUEST'] }, OPERATOR);
    await until(() => statSync(`${path}-wal`).size <= 4 * MEBIBYTE);
    assert.ok('entries' in (await keys.audit.check()).verification);
    await store.close();
  });
});
