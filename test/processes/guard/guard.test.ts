import assert from 'node:assert/strict';
import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer, request } from 'node:https';
import { request as plainRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createPlainServer } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestCli, testCli } from '../../support/cli.ts';
import { browse, cookiesOf, nextOf, OPENS_PAGE, sendKey } from '../../support/door.ts';
import { connectRaw } from '../../support/raw-connection.ts';
import { type Finished, finished, startCli } from '../../support/process.ts';
import { runParts } from '../../support/run-parts.ts';
import { tempFolder } from '../../support/temp.ts';
import { CERTIFICATE } from '../../support/tls-proxy.ts';
import { until } from '../../support/until.ts';

const KEY_FILE = join(dirname(CERTIFICATE), 'key.pem');

interface Guarding {
  url: string;
  child: ChildProcess;
  end: Promise<Finished>;
}

describe('guard', () => {
  const started: ChildProcess[] = [];
  const services: Server[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
    for (const service of services.splice(0)) {
      service.closeAllConnections();
      service.close();
    }
  });

  /** A service that echoes the caller, and accepts any upgrade. */
  const startService = async (service: Server = createServer()) => {
    service.on('request', (incoming, outgoing) => outgoing.end(`for ${String(incoming.headers['x-auth-key-name'])}`));
    service.on('upgrade', (incoming, socket) => {
      socket.on('error', () => {});
      socket.write(
        `HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: ${incoming.headers.upgrade}\r\n\r\nhello`,
      );
    });
    services.push(service);
    await once(service.listen(0, 'localhost'), 'listening');
    return (service.address() as AddressInfo).port;
  };

  const guard = async (cli: TestCli, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Guarding> => {
    const child = startCli(['guard', ...args], { env: { SVC_API_DATABASE: cli.database, ...env } });
    started.push(child);
    const end = finished(child);
    const first = once(child.stdout!, 'data') as Promise<[string]>;
    const line = await Promise.race([
      first.then(([printed]) => printed),
      end.then(({ stderr }) => assert.fail(`It ended: ${stderr}`)),
    ]);
    const [, url] = /^Listening on (\S+)\n$/.exec(line) ?? assert.fail(`Not an address: ${line}`);
    return { url: url!, child, end };
  };

  const get = async (url: string, key?: string) => {
    const reply = await fetch(url, key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } });
    return [reply.status, await reply.text()] as const;
  };

  it('runs nothing of GraphQL, whose memory it can do without', async () => {
    const cli = testCli();
    const port = await startService();
    const { key } = await cli.given('Reader', { permissions: ['DASHBOARD:READ_ANY'] });
    const folder = tempFolder();
    const args = [`http://localhost:${port}`, '--any-key', '--port', '0'];
    const { url, child, end } = await guard(cli, args, { NODE_V8_COVERAGE: folder });
    assert.deepEqual(await get(url, key), [200, 'for Reader']);
    child.kill();
    await end;
    const parts = runParts(folder).join('\n');
    assert.match(parts, /\/pino\//);
    assert.doesNotMatch(parts, /graphql/);
  });

  it('logs an answer that is not valid HTTP without its bytes, which can hold credentials', async () => {
    const cli = testCli();
    const answer = 'HTTP/1.1 200 OK\r\nSet-Cookie: session=0123\r\nX-A: \u0001\r\n\r\n';
    const broken = createPlainServer((socket) => socket.on('error', () => {}).once('data', () => socket.end(answer)));
    await once(broken.listen(0, '127.0.0.1'), 'listening');
    const { key } = await cli.given('Reader', { permissions: ['DASHBOARD:READ_ANY'] });
    const { port } = broken.address() as AddressInfo;
    const { url, child, end } = await guard(cli, [`http://127.0.0.1:${port}`, '--any-key', '--port', '0']);
    assert.equal((await get(url, key))[0], 502);
    child.kill();
    broken.close();
    const { stderr } = await end;
    assert.match(stderr, /"code":"HPE_INVALID_HEADER_TOKEN".*"msg":"the upstream did not answer"/);
    assert.ok(!stderr.includes([...Buffer.from('session=0123')].join(',')), stderr);
  });

  it('has people sign in as its configuration says while it runs, and says nothing of their secrets', async () => {
    const cli = testCli();
    const port = await startService();
    const { key } = await cli.given('Reader', { permissions: ['DASHBOARD:READ_ANY'] });
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'resources: []', { mode: 0o600 });
    const args = [`http://localhost:${port}`, '--permission', 'DASHBOARD:READ_ANY', '--port', '0', '--config', config];
    const { url, child, end } = await guard(cli, args, { LOG_LEVEL: 'debug' });
    const isPage = async (cookie?: string) =>
      (await browse(`${url}/deep`, { headers: { ...OPENS_PAGE, cookie } })).body.includes('<h1>Sign in to ');
    assert.equal(await isPage(), true);
    const page = await sendKey(url, key, {}, '/deep');
    assert.equal(nextOf(page), '/deep');
    const cookie = cookiesOf(page);
    assert.equal((await browse(`${url}/deep`, { headers: { cookie } })).body, 'for Reader');
    assert.equal((await sendKey(url, `${key}x`)).status, 403);
    writeFileSync(config, 'sign-in: off');
    await until(async () => !(await isPage()));
    assert.equal((await browse(`${url}/deep`, { headers: { cookie } })).status, 401);
    assert.equal((await browse(`${url}/.svc-api/`)).status, 401);
    writeFileSync(config, 'sign-in: on');
    await until(() => isPage());
    assert.equal(await isPage(cookie), false, 'the session has gone on');
    child.kill('SIGTERM');
    const { stderr } = await end;
    assert.match(stderr, /"signed in"/);
    assert.match(stderr, /"endpoint":"sign-in"/);
    for (const secret of [key, `${key}x`, ...cookie.match(/[\w-]{43}/g)!]) assert.ok(!stderr.includes(secret));
  });

  it('knows in all processes which key has begun a session or a task of an MCP server', async () => {
    const cli = testCli();
    const respond = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
      const { id } = JSON.parse(await text(incoming)) as { id: number };
      const result = { resultType: 'task', taskId: `t${id}`, status: 'working' };
      const headers = { 'content-type': 'application/json', 'mcp-session-id': `s${id}` };
      outgoing.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    };
    const service = createServer((incoming, outgoing) => void respond(incoming, outgoing));
    await once(service.listen(0, 'localhost'), 'listening');
    services.push(service);
    const { port } = service.address() as AddressInfo;
    const config = join(tempFolder(), 'svc-api.yaml');
    const route = "{ host: '*', path: /mcp, mcp: { tools: ['*'] }, allow: DISK:READ_ANY }";
    writeFileSync(config, `routes: [${route}]`, { mode: 0o600 });
    const [one, other] = [
      await cli.given('One', { permissions: ['DISK:READ_ANY'] }),
      await cli.given('Other', { permissions: ['DISK:READ_ANY'] }),
    ];
    const args = [`http://localhost:${port}`, '--port', '0', '--workers', '3', '--config', config];
    const { url, child, end } = await guard(cli, args);
    // On a new connection each time, which any of the processes can accept.
    const send = async (key: string, id: number, method: string, params: object, session?: string) => {
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        connection: 'close',
        ...(session !== undefined && { 'mcp-session-id': session }),
      };
      const asked = plainRequest(`${url}/mcp`, { method: 'POST', headers, agent: false });
      asked.end(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
      const [reply] = (await once(asked, 'response')) as [IncomingMessage];
      await text(reply);
      return reply.statusCode;
    };
    for (let id = 0; id < 12; id += 1) {
      assert.equal(await send(one.key, id, 'tools/call', { name: 'a' }), 200);
      const statuses = await Promise.all(
        [one, other].flatMap(({ key }) => [
          send(key, 100, 'tasks/get', { taskId: `t${id}` }),
          send(key, 100, 'ping', {}, `s${id}`),
        ]),
      );
      assert.deepEqual(statuses, [200, 200, 403, 404]);
    }
    child.kill('SIGTERM');
    await end;
  });

  it('lets requests with the permission pass, until it is stopped', async () => {
    const cli = testCli();
    const port = await startService();
    const { key } = await cli.given('Reader', { permissions: ['DASHBOARD:READ_ANY'] });
    const other = await cli.given('Other', { permissions: ['DISK:READ_ANY'] });
    const args = [`http://localhost:${port}`, '--permission', 'dashboard:read_any', '--port', '0'];
    const { url, child, end } = await guard(cli, [...args, '--health-path', '/guard/health']);
    assert.deepEqual(await get(url, key), [200, 'for Reader']);
    assert.equal((await get(url, other.key))[0], 403);
    assert.equal((await get(url))[0], 401);
    assert.deepEqual(await get(`${url}/guard/health`), [200, '{"status":"ok"}']);

    // Deleting a key in another process closes its connections; open ones do not delay the stop.
    const open = (secret: string) => {
      const raw = connectRaw(url);
      const head = [
        'GET / HTTP/1.1',
        'Host: a',
        'Connection: upgrade',
        'Upgrade: x',
        `Authorization: Bearer ${secret}`,
      ];
      raw.request(...head);
      return raw;
    };
    const [tunnel, staying] = [
      open((await cli.given('Deleted', { permissions: ['DASHBOARD:READ_ANY'] })).key),
      open(key),
    ];
    await Promise.all([tunnel.receives('hello'), staying.receives('hello')]);
    await cli.run(['apikey', 'delete', 'Deleted', '--yes']);
    await tunnel.closed();
    assert.equal(staying.isClosed, false);
    child.kill('SIGTERM');
    assert.equal((await end).code, 0);
    await staying.closed();
  });

  it('lets a key with a limit in as often as that allows, and counts its uses', async () => {
    const cli = testCli();
    const { key } = await cli.given('Reader', { permissions: ['DASHBOARD:READ_ANY'] });
    assert.equal((await cli.run(['apikey', 'update', 'Reader', '--rate', '2/d'])).code, 0);
    const { url, child, end } = await guard(cli, [
      `http://localhost:${await startService()}`,
      '--any-key',
      '--port',
      '0',
    ]);
    const statuses = [await get(url, key), await get(url, key), await get(url, key)].map(([status]) => status);
    assert.deepEqual(statuses, [200, 200, 429]);
    child.kill('SIGTERM');
    assert.deepEqual([(await end).code, (await end).stderr.includes('"level":50')], [0, false]);
    const { stdout } = await cli.run(['apikey', 'show', 'Reader', '--json']);
    assert.equal((JSON.parse(stdout) as { uses: number }).uses, 2);
  });

  it('goes by the routes of the configuration, and follows it, in several processes', async () => {
    const cli = testCli();
    const port = await startService();
    const file = join(tempFolder(), 'svc-api.yaml');
    const declare = (action: string) =>
      writeFileSync(file, `resources: [WIKI]\nroutes: [{ host: "*", path: /**, allow: WIKI:${action} }]\n`);
    declare('READ_ANY');
    const { stdout } = await cli.run(['apikey', 'create', 'R', '--permissions', 'WIKI:READ_ANY', '--config', file]);
    const args = [`http://localhost:${port}`, '--config', file, '--port', '0', '--workers', '2'];
    const { url, child, end } = await guard(cli, args);
    assert.deepEqual(await get(url, stdout.trim()), [200, 'for R']);
    declare('UPDATE_ANY');
    await until(async () => (await get(url, stdout.trim()))[0] === 403);
    child.kill('SIGTERM');
    assert.equal((await end).code, 0);
  });

  it('serves all upstreams of the configuration, and takes a changed one completely or not at all', async () => {
    const cli = testCli();
    const [file, secret] = ['svc-api.yaml', 'secret'].map((name) => join(tempFolder(), name)) as [string, string];
    let held: ServerResponse | undefined;
    const startNamed = (name: string) => {
      const service = createServer((incoming, outgoing) => {
        if (incoming.url === '/held') (held = outgoing).flushHeaders();
        else outgoing.end(`${name} ${String(incoming.headers['x-api-key'])}`);
      });
      services.push(service);
      return once(service.listen(0, '127.0.0.1'), 'listening').then(() => (service.address() as AddressInfo).port);
    };
    const [first, second] = [await startNamed('first'), await startNamed('second')];
    const declare = (port: number, secretFile = secret) =>
      writeFileSync(
        file,
        `upstreams: { app: { url: "http://127.0.0.1:${port}", send: { X-Api-Key: { file: "${secretFile}" } } } }\n` +
          'routes: [{ host: "*", path: /**, allow: key, to: app }]\n',
      );
    writeFileSync(secret, 'the-key-of-the-service\n', { mode: 0o600 });
    declare(first);
    const { key } = await cli.given('Caller');
    const { url, child, end } = await guard(cli, ['--config', file, '--port', '0']);
    const hidden = '*'.repeat('the-key-of-the-service'.length);
    assert.deepEqual(await get(url, key), [200, `first ${hidden}`]);
    const open = await fetch(`${url}/held`, { headers: { authorization: `Bearer ${key}` } });
    const reload = async (line: RegExp) => {
      let log = '';
      const read = (text: string) => (log += text);
      child.stderr!.on('data', read);
      child.kill('SIGHUP');
      await until(() => line.test(log));
      child.stderr!.off('data', read);
    };
    declare(second, `${secret}-that-is-missing`);
    await reload(/CONFIG_UNAVAILABLE/);
    assert.deepEqual(await get(url, key), [200, `first ${hidden}`]);
    declare(second);
    await until(async () => (await get(url, key))[1] === `second ${hidden}`);
    held!.end('to the end');
    assert.equal(await open.text(), 'to the end');
    child.kill('SIGTERM');
    const { code, stderr } = await end;
    assert.deepEqual([code, stderr.includes('the-key-of-the-service')], [0, false]);
  });

  it('sends the service a key of its own from a file that the command line names', async () => {
    const cli = testCli();
    const service = createServer((incoming, outgoing) =>
      outgoing.end(`for ${incoming.headers['x-auth-token']?.length}`),
    );
    services.push(service);
    await once(service.listen(0, '127.0.0.1'), 'listening');
    const { port } = service.address() as AddressInfo;
    const secret = join(tempFolder(), 'secret');
    writeFileSync(secret, 'the-key-of-the-service', { mode: 0o600 });
    const { key } = await cli.given('Caller');
    const args = [`http://127.0.0.1:${port}`, '--any-key', '--port', '0', '--send-header', `X-Auth-Token=@${secret}`];
    const { url } = await guard(cli, args);
    assert.deepEqual(await get(url, key), [200, 'for 22']);
  });

  it('speaks TLS on both sides, and verifies the service', async () => {
    const cli = testCli();
    const { key } = await cli.given('Reader');
    const port = await startService(createTlsServer({ cert: readFileSync(CERTIFICATE), key: readFileSync(KEY_FILE) }));
    const args = [`https://localhost:${port}`, '--any-key', '--port', '0'];
    const keyFile = join(tempFolder(), 'key.pem');
    writeFileSync(keyFile, readFileSync(KEY_FILE), { mode: 0o600 });
    const tls = ['--tls-cert', CERTIFICATE, '--tls-key', keyFile];
    const { url } = await guard(cli, [...args, ...tls], { NODE_EXTRA_CA_CERTS: CERTIFICATE });
    const headers = { authorization: `Bearer ${key}` };
    const { port: own } = new URL(url);
    const asking = request({ host: 'localhost', port: own, ca: readFileSync(CERTIFICATE), headers }).end();
    const [reply] = (await once(asking, 'response')) as [IncomingMessage];
    assert.deepEqual([reply.statusCode, await text(reply)], [200, 'for Reader']);
  });

  it('listens on a Unix socket', async () => {
    const cli = testCli();
    const { key } = await cli.given('Reader');
    const port = await startService();
    const socketPath = join(tempFolder(), 'guard.sock');
    await guard(cli, [`http://localhost:${port}`, '--any-key', '--socket', socketPath]);
    const asking = plainRequest({ socketPath, headers: { host: 'a', authorization: `Bearer ${key}` } }).end();
    const [reply] = (await once(asking, 'response')) as [IncomingMessage];
    assert.deepEqual([reply.statusCode, await text(reply)], [200, 'for Reader']);
  });

  describe('reports errors, and creates no store', () => {
    const upstream = 'http://127.0.0.1:3000';
    const ways = 'Pass --resource, --permission or --any-key, or declare routes in svc-api.yaml.';
    for (const [what, args, code, message] of [
      ['nothing that says who may pass', [upstream], 'USAGE', `No requirement is set. ${ways}`],
      [
        'a resource that is not declared',
        [upstream, '--permission', 'GRAFANA:READ_ANY'],
        'PERMISSION_INVALID',
        'Declare resources of your own in svc-api.yaml: resources: [GRAFANA]',
      ],
      ['two ways to say who may pass', [upstream, '--any-key', '--permission', 'DISK:READ_ANY'], 'USAGE', 'together'],
      ['an upstream that is none', ['127.0.0.1:3000', '--any-key'], 'USAGE', 'is not the address of an upstream'],
      ['no upstream', ['--any-key'], 'USAGE', 'No upstream is set. Pass its address'],
      [
        'a header for upstreams that have their own',
        ['--any-key', '--send-header', 'X-Api-Key=@f'],
        'USAGE',
        'For others, write "send" in "upstreams" of svc-api.yaml.',
      ],
      [
        'a secret in place of its file',
        [upstream, '--any-key', '--send-header', 'X-Api-Key=hunter2'],
        'USAGE',
        '--send-header must be a name and a file, such as X-Api-Key=@/run/secrets/app.',
      ],
      [
        'a header that the guard writes',
        [upstream, '--any-key', '--send-header', 'Host=@f'],
        'USAGE',
        '--send-header cannot send "Host": it is written by the guard itself.',
      ],
      [
        'a header for upstreams that have lists of their own',
        ['--any-key', '--pass-header', 'Remote-User'],
        'USAGE',
        'For others, write "passHeaders" in "upstreams" of svc-api.yaml.',
      ],
      [
        'a header that says nothing about people',
        [upstream, '--any-key', '--pass-header', 'Cookie'],
        'USAGE',
        '--pass-header cannot pass "Cookie" on: it does not identify the caller.',
      ],
      ['no time at all', [upstream, '--any-key', '--timeout', '0'], 'USAGE', '--timeout is "0"'],
      ['a path that is none', [upstream, '--any-key', '--health-path', 'x?y'], 'USAGE', '--health-path is "x?y"'],
    ] as const) {
      it(`given ${what}`, async () => {
        const cli = testCli();
        const { code: exit, stderr } = await cli.run(['guard', ...args]);
        assert.equal(exit, 2);
        assert.ok(stderr.replaceAll(/\n +/g, ' ').includes(message), stderr);
        assert.ok(stderr.includes(`Code: ${code}`), stderr);
        assert.equal(existsSync(cli.database), false);
      });
    }
  });
});
