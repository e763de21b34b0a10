import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createApp } from '../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { tempFolder } from '../support/temp.ts';

describe('a Unix socket', () => {
  let open: TestKeys;
  let secret: string;
  const running: RunningServer[] = [];
  before(async () => {
    open = await openTestKeys();
    ({ secret } = await createPrincipal(open.keys, { name: 'Guest', roles: ['GUEST'] }));
  });
  after(() => open.store.close());
  afterEach(async () => {
    await Promise.all(running.splice(0).map((server) => server.stop(0)));
  });

  const start = async (socket: string) => {
    const server = await listen({ app: await createApp({ keys: open.keys }), socket });
    running.push(server);
    return server;
  };
  const ask = async (socketPath: string) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const sent = request({ socketPath, path: '/graphql', method: 'POST', headers, agent: false });
    sent.end('{"query":"{ online }"}');
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of reply.setEncoding('utf8')) text += String(chunk);
    return text;
  };
  const refusal = (message: RegExp) => ({ code: 'LISTEN_FAILED', message });

  /** Leaves a socket file without a listener. */
  const leaveBehind = async (path: string) => {
    const server = createServer().listen(`${path}.first`);
    await once(server, 'listening');
    renameSync(`${path}.first`, path);
    server.close();
    await once(server, 'close');
  };

  it('is listened on in place of a port, and removed when the server stops', async () => {
    const path = join(tempFolder(), 'api.sock');
    const server = await start(path);
    assert.equal(server.url, `unix:${path}`);
    assert.equal(await ask(path), '{"data":{"online":true}}');
    await server.stop();
    assert.equal(existsSync(path), false);
  });

  it('is accessible only to its user and group, and leaves the umask of the process unchanged', async () => {
    const before = process.umask();
    try {
      for (const mask of [0o000, 0o022, 0o077]) {
        process.umask(mask);
        const path = join(tempFolder(), 'api.sock');
        await start(path);
        assert.deepEqual([(lstatSync(path).mode & 0o777).toString(8), process.umask()], ['660', mask]);
      }
    } finally {
      process.umask(before);
    }
  });

  it('takes the place of one whose server was killed', async () => {
    const path = join(tempFolder(), 'api.sock');
    await leaveBehind(path);
    await start(path);
    assert.equal(await ask(path), '{"data":{"online":true}}');
    assert.equal(lstatSync(path).mode & 0o777, 0o660);
  });

  it('is left to the server that listens on it', async () => {
    const path = join(tempFolder(), 'api.sock');
    await start(path);
    await assert.rejects(
      start(path),
      refusal(/^The server cannot start: another server listens on .*api\.sock\. Stop it, or choose another path/),
    );
    assert.equal(await ask(path), '{"data":{"online":true}}');
  });

  it('takes the place of nothing else, and follows no link', async () => {
    const folder = tempFolder();
    const at = (name: string) => join(folder, name);
    writeFileSync(at('file'), 'kept');
    mkdirSync(at('folder'));
    await leaveBehind(at('stale'));
    symlinkSync(at('stale'), at('to-stale'));
    symlinkSync(at('nothing'), at('to-nothing'));
    for (const [name, problem] of [
      ['file', 'not a socket'],
      ['folder', 'not a socket'],
      ['to-stale', 'a symbolic link, which is not followed'],
      ['to-nothing', 'a symbolic link, which is not followed'],
    ] as const)
      await assert.rejects(start(at(name)), refusal(new RegExp(`/${name} is ${problem}\\. Remove it, or choose`)));
    assert.deepEqual(
      [readlinkSync(at('to-stale')), lstatSync(at('stale')).isSocket(), existsSync(at('nothing'))],
      [at('stale'), true, false],
    );
  });

  it('is not created where it cannot be, and the error says why', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'file'), '');
    for (const [path, message] of [
      [join(folder, 'missing/api.sock'), /the folder of .* does not exist\. Create it, or choose another path/],
      [join(folder, 'file/api.sock'), /the folder of .* is a file\. Choose another path with --socket\.$/],
      [join(folder, 'x'.repeat(120)), /is too long for the path of a socket\. Choose a shorter one/],
      ['/proc/api.sock', /this user is not allowed to create \/proc\/api\.sock\. Choose another path with --socket/],
    ] as const)
      await assert.rejects(start(path), refusal(message), path);
  });
});
