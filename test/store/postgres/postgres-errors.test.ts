import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { KeysError } from '../../../src/keys/basics/errors.ts';
import { readPostgresUrl } from '../../../src/store/postgres-address.ts';
import { openStore } from '../../../src/store/open.ts';
import { describeOn, describeAlwaysOnEach } from '../../support/dialects.ts';
import { changeDirectly, readDirectly } from '../../support/direct.ts';
import { authenticate, countKeys, idOf, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { postgresStore } from '../../support/postgres.ts';
import { runCli } from '../../support/process.ts';
import { tempFolder } from '../../support/temp.ts';

const create = (keys: TestKeys['keys'], name: string) => keys.create({ name, roles: ['GUEST'] }, OPERATOR);

describeAlwaysOnEach('a value that no two keys may have', () => {
  for (const [field, code] of [
    ['id', 'ID_TAKEN'],
    ['name', 'NAME_TAKEN'],
    ['publicId', 'PREFIX_TAKEN'],
    ['digest', 'SECRET_TAKEN'],
    ['previousDigest', 'SECRET_TAKEN'],
  ] as const) {
    it(`is ${code} where ${field} is taken in spite of the rules`, async () => {
      const { store } = await openTestKeys({ asServer: true });
      const same = { [field]: field === 'id' ? idOf('same') : 'same' };
      const insert = (id: string) => store.repository.write((writer) => writer.insert([storedKey(id, same)]));
      await insert('one');
      await assert.rejects(insert('two'), { code });
      assert.equal(await countKeys(store.repository), 1);
      await store.close();
    });
  }
});

describeOn('postgres', 'a server', () => {
  it('that is not there is STORE_UNAVAILABLE, also by the command line, which hides the password', async () => {
    // No program listens on port 1.
    const url = 'postgres://me:hunter2@127.0.0.1:1/keys';
    const { code, stdout, stderr } = await runCli(['apikey', 'list', '--json', '--database', url], {
      env: { LOG_LEVEL: 'debug' },
    });
    assert.equal(code, 1);
    const answer = JSON.parse(stdout) as { code: string; error: string };
    assert.equal(answer.code, 'STORE_UNAVAILABLE');
    assert.match(answer.error, /^The key store postgres:\/\/me@127\.0\.0\.1:\d+\/keys cannot be reached/);
    assert.doesNotMatch(stdout + stderr, /hunter2/);
  });

  it('that does not answer is STORE_UNAVAILABLE after the time that the URL gives it', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    const open = (timeout: number) =>
      openTestKeys({ asServer: true, database: `postgres://me@127.0.0.1:${port}/keys?connect_timeout=${timeout}` });
    const unreachable = { code: 'STORE_UNAVAILABLE', message: /cannot be reached/ };
    // The one with the longer timeout started first, and still waits.
    const done: number[] = [];
    const attempts = [600, 1].map((timeout) =>
      assert.rejects(open(timeout), unreachable).finally(() => done.push(timeout)),
    );
    await Promise.race(attempts);
    assert.deepEqual(done, [1]);
    silent.close();
    for (const socket of sockets) socket.destroy();
    await Promise.all(attempts);
  });

  it('that refuses the password is STORE_UNAVAILABLE', async () => {
    const url = new URL(postgresStore());
    [url.username, url.password] = ['guarded', 'hunter2'];
    await assert.rejects(openTestKeys({ asServer: true, database: url.href }), (error: Error & { code: string }) => {
      assert.equal(error.code, 'STORE_UNAVAILABLE');
      assert.match(error.message, /refuses the user or the password/);
      assert.doesNotMatch(JSON.stringify([error.message, error.cause, error.stack]), /hunter2/);
      return true;
    });
  });

  it('that has no such database is STORE_UNAVAILABLE', async () => {
    const url = new URL(postgresStore());
    url.pathname = '/nowhere';
    await assert.rejects(openTestKeys({ asServer: true, database: url.href }), {
      code: 'STORE_UNAVAILABLE',
      message: /has no such database/,
    });
  });

  it('that is read-only is STORE_READONLY only for changes', async () => {
    const database = postgresStore();
    const { keys, store } = await openTestKeys({ asServer: true, database });
    await create(keys, 'CI');
    const { schema } = readPostgresUrl(database);
    const url = new URL(database);
    url.username = `${schema}_reader`;
    await changeDirectly(
      database,
      `create role ${url.username} login`,
      `grant usage on schema ${schema} to ${url.username}`,
      `grant select on all tables in schema ${schema} to ${url.username}`,
    );
    const other = await openTestKeys({ asServer: true, database: url.href });
    await assert.rejects(create(other.keys, 'New'), { code: 'STORE_READONLY' });
    assert.equal((await other.keys.list({}, OPERATOR)).keys.length, 1);
    await other.store.close();
    await store.close();
    await changeDirectly(database, `drop owned by ${url.username}`, `drop role ${url.username}`);
  });

  it('that holds the lock for others is STORE_LOCKED after a while', async () => {
    const database = postgresStore();
    const { keys, store } = await openTestKeys({ asServer: true, database });
    await store.repository.write(async () => {
      const quick = await openTestKeys({ asServer: true, database, lockWaitMs: 500 });
      await assert.rejects(create(quick.keys, 'New'), {
        code: 'STORE_LOCKED',
        message: /is locked by another process/,
      });
      await quick.store.close();
    });
    await create(keys, 'New');
    await store.close();
  });

  it('that terminates all connections costs no query and no change', async () => {
    const database = namedStore();
    const { keys, store } = await openTestKeys({ asServer: true, database });
    const { key: secret } = await create(keys, 'First');
    await Promise.all([authenticate(keys, secret), keys.list({}, OPERATOR), keys.store.check()]);
    await endConnections(database);
    assert.ok('principal' in (await authenticate(keys, secret)));
    await endConnections(database);
    await create(keys, 'Second');
    let calls = 0;
    await store.repository.write(async (writer) => {
      calls += 1;
      if (calls === 1) await endConnections(database);
      await writer.insert([storedKey('third')]);
    });
    assert.equal(calls, 2);
    assert.equal((await keys.list({}, OPERATOR)).keys.length, 3);
    await store.close();
  });
});

describeOn('postgres', 'the driver', () => {
  const withoutDriver = {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
      `import { registerHooks } from 'node:module';
      registerHooks({ resolve(name, context, next) { return next(name === 'pg' ? 'pg-is-not-here' : name, context); } });`,
    )}`,
  };

  it('is asked for where it is missing, by its name', async () => {
    const { stdout } = await runCli(['apikey', 'list', '--json', '--database', 'postgres://host/db'], {
      env: withoutDriver,
    });
    const { code, error } = JSON.parse(stdout) as { code: string; error: string };
    assert.equal(code, 'STORE_UNAVAILABLE');
    assert.match(error, /needs the package "pg", which is not installed\. Run "npm install pg"/);
  });

  it('is not needed for a store in a file', async () => {
    const database = join(tempFolder(), 'keys.sqlite');
    const args = ['apikey', '--create', '--name', 'CI', '--roles', 'GUEST', '--database', database];
    const { code, stderr } = await runCli(args, { env: withoutDriver });
    assert.equal(code, 0, stderr);
  });
});

/** A store whose connections have an identifiable name. */
function namedStore(): string {
  const url = new URL(postgresStore());
  url.searchParams.set('application_name', url.searchParams.get('schema')!);
  return url.href;
}

/** Closes all connections to a store. */
async function endConnections(database: string): Promise<void> {
  const name = new URL(database).searchParams.get('application_name');
  await readDirectly(
    database,
    `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = '${name}'`,
  );
}

describeOn('postgres', 'a server that only speaks like PostgreSQL', () => {
  for (const [version, said] of [
    [
      'CockroachDB CCL v24.3.1 (x86_64-pc-linux-gnu, built 2024/12/16)',
      /is "CockroachDB CCL v24.* whose locks or noti/,
    ],
    [
      'PostgreSQL 11.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu',
      /is "PostgreSQL 11\.2-YB-.* whose locks or notifications/,
    ],
    ['PostgreSQL 13.14 (Debian 13.14-1)', /its server is PostgreSQL 13\. Use PostgreSQL 14 or later\./],
  ] as const) {
    it(`is refused, with the reason: ${version}`, async () => {
      const server = createServer((socket) => answerAll(socket, version)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const opened = openStore({ database: `postgres://me:hunter2@127.0.0.1:${port}/keys` });
      await assert.rejects(opened, ({ code, message }: KeysError) => {
        assert.match(message, said);
        return code === 'STORE_UNAVAILABLE';
      });
      server.close();
    });
  }
});

/** Accepts any login, and answers each query with a text: section 55.2 of PostgreSQL's manual. */
function answerAll(socket: Socket, text: string): void {
  const message = (type: string, ...parts: (string | number[])[]) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
    const length = Buffer.alloc(4);
    length.writeInt32BE(body.length + 4);
    return Buffer.concat([Buffer.from(type), length, body]);
  };
  const ready = message('Z', 'I');
  const columns = message(
    'T',
    [0, 1],
    'version\0',
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 255, 255, 255, 255, 255, 255, 0, 0],
  );
  const row = message('D', [0, 1, 0, 0, 0, text.length], text);
  socket.once('data', () => {
    socket.write(Buffer.concat([message('R', [0, 0, 0, 0]), ready]));
    socket.on('data', (data) => {
      if (data.toString('latin1', 0, 1) === 'Q')
        socket.write(Buffer.concat([columns, row, message('C', 'SELECT 1\0'), ready]));
    });
  });
}
