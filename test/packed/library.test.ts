import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostEnv, mustRun, packedFile, TSC } from '../support/host.ts';
import { blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { finished, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** Frameworks of the examples that the program does not need. */
const FRAMEWORKS = {
  '@grpc/grpc-js': '1.14.7',
  '@nestjs/common': '12.5.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
  '@trpc/server': '11.25.2',
  '@types/express': '^5',
  '@types/koa': '3.0.3',
  '@types/node': '^24',
  '@types/ws': '^8',
  express: '^5',
  fastify: '^5',
  hono: '^4',
  koa: '3.3.0',
  'reflect-metadata': '^0.2.2',
  rxjs: '^7.8.2',
  ws: '^8',
};

/** Module resolution in Node, current and older, and in bundlers. */
const RESOLUTIONS = [
  ['--module', 'nodenext'],
  ['--module', 'node16'],
  ['--module', 'esnext', '--moduleResolution', 'bundler'],
];

/** The answer of each HTTP server to a GET of the latest backup, by path. */
const SERVERS: Readonly<Record<string, string>> = {
  hono: '/backups/latest',
  express: '/backups/latest',
  fastify: '/backups/latest',
  node: '/',
  koa: '/',
  nest: '/backups/latest',
};

/** Programs with Express, with Fastify, and with neither. */
const MIDDLEWARE = `
  import { createServer } from 'node:http';
  import express from 'express';
  import fastify from 'fastify';
  import { openKeys } from 'svc-api';
  import { type AuthenticatedRequest, bearerAuth } from 'svc-api/express';
  import { bearerAuth as hook } from 'svc-api/fastify';
  const keys = await openKeys({ database: './middleware.sqlite' });
  const { key: secret } = await keys.create({ name: 'Reader', permissions: ['SERVICES:READ_ANY'] }, { actor: 'operator' });
  const auth = bearerAuth({ keys, permission: 'SERVICES:READ_ANY' });
  const app = express();
  app.use(auth);
  app.get('/', async (req, res) => { if (await req.checkAgain!()) res.end(req.principal?.apiKey.name); });
  // @ts-expect-error -- it may not stand behind bearerAuth
  app.get('/wrong', (req, res) => res.end(req.principal.apiKey.name));
  const other = fastify();
  other.addHook('onRequest', hook({ keys }));
  other.get('/', { onRequest: hook({ keys, trust: [] }) }, async (request) => request.principal?.apiKey.name);
  const bare = createServer((req, res) => auth(req, res, () => res.end((req as AuthenticatedRequest).principal.apiKey.name)));
  const servers = [app.listen(0), bare.listen(0)];
  await other.listen({ port: 0 });
  const names = [];
  for (const server of [...servers, other.server]) {
    const { port } = server.address() as { port: number };
    names.push(await (await fetch('http://127.0.0.1:' + port, { headers: { authorization: 'Bearer ' + secret } })).text());
  }
  console.log(names.join());
  process.exit();
`;

describe('the examples of the library, with the packed package', function () {
  this.timeout(600_000);
  let folder: string;
  let files: string[];
  let env: NodeJS.ProcessEnv;
  const secrets: Record<string, string> = {};

  before(async () => {
    folder = tempFolder();
    const dependencies = { 'svc-api': `file:${packedFile()}`, ...FRAMEWORKS };
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
    await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
    });
    mkdirSync(join(folder, 'src'));
    for (const file of readdirSync(join(ROOT, 'examples/library')).filter((name) => name.endsWith('.ts')))
      cpSync(join(ROOT, 'examples/library', file), join(folder, 'src', file));
    files = readdirSync(join(folder, 'src')).map((file) => join('src', file));
    const config = join(folder, 'svc-api.yaml');
    writeFileSync(config, 'title: Acme keys\n');
    env = hostEnv({ SVC_API_DATABASE: join(folder, 'keys.sqlite'), SVC_API_CONFIG: config });
    const cli = join(folder, 'node_modules/.bin/svc-api');
    for (const [name, permissions] of Object.entries({
      Reader: 'SERVICES:READ_ANY,ME:READ_OWN',
      Other: 'INFO:READ_ANY',
    })) {
      const created = await mustRun(cli, ['apikey', 'create', name, '--permissions', permissions], {
        cwd: folder,
        env,
      });
      secrets[name] = created.trim();
    }
  });

  for (const resolution of RESOLUTIONS)
    it(`have types that hold with ${resolution.join(' ')}`, async () => {
      const options = ['--experimentalDecorators', '--skipLibCheck', ...resolution];
      // The last compilation produces what runs.
      const out = ['--noEmit', 'false', '--outDir', 'out'];
      await mustRun(process.execPath, [...TSC, ...options, ...out, ...files], { cwd: folder });
    });

  it('compile middleware of Express, Fastify and Node alone with types that no example uses', async () => {
    writeFileSync(join(folder, 'middleware.mts'), MIDDLEWARE);
    await mustRun(process.execPath, [...TSC, 'middleware.mts'], { cwd: folder });
    assert.equal(await mustRun(process.execPath, ['middleware.mts'], { cwd: folder, env }), 'Reader,Reader,Reader\n');
  });

  it('accept an action of the program, and no misspelt one, once it is declared as docs/configuration.md has it', async () => {
    const program = `
      import { openKeys } from 'svc-api';
      ${blockWith('interface OwnActions', 'docs/configuration.md', 'ts')}
      const keys = await openKeys({ resources: ['WIKI'], actions: ['PUBLISH'] });
      await keys.check({}, { permission: 'WIKI:PUBLISH' });
      // @ts-expect-error -- misspelt
      await keys.check({}, { permission: 'WIKI:PUBISH' });`;
    writeFileSync(join(folder, 'actions.mts'), program);
    await mustRun(process.execPath, [...TSC, '--skipLibCheck', 'actions.mts'], { cwd: folder });
  });

  /** Runs an example, and calls `ask` once it answers. */
  async function withServer(name: string, ask: (url: string) => Promise<void>): Promise<void> {
    const port = await freePort();
    const child = spawn(process.execPath, [join(folder, `out/${name}.js`)], {
      cwd: folder,
      env: { ...env, PORT: `${port}` },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    try {
      const url = `http://127.0.0.1:${port}`;
      await until(() =>
        fetch(url).then(
          () => true,
          (error: Error & { cause?: { code?: string } }) => {
            if (child.exitCode !== null) throw new Error(`${name} has ended.`);
            // gRPC only speaks HTTP/2.
            return error.cause?.code !== 'ECONNREFUSED';
          },
        ),
      );
      await ask(url);
    } finally {
      child.kill('SIGKILL');
    }
  }

  const bearer = (name: string) => ({ authorization: `Bearer ${secrets[name]}` });

  for (const [name, path] of Object.entries(SERVERS))
    it(`guard a server with ${name}`, () =>
      withServer(name, async (url) => {
        const statusOf = async (headers: Record<string, string>) => (await fetch(url + path, { headers })).status;
        const answer = await fetch(url + path, { headers: bearer('Reader') });
        assert.deepEqual([answer.status, await answer.json()], [200, { by: 'Reader' }]);
        assert.deepEqual([await statusOf({}), await statusOf(bearer('Other'))], [401, 403]);
        if (!['hono', 'express', 'fastify'].includes(name)) return;
        const headers = { ...bearer('Reader'), 'content-type': 'application/json' };
        const made = await fetch(`${url}/backups/new`, { method: 'POST', headers, body: '{"disk":"sda"}' });
        assert.deepEqual(await made.json(), { disk: 'sda' });
      }));

  it('guard procedures of tRPC', () =>
    withServer('trpc', async (url) => {
      const ask = async (headers: Record<string, string>) => {
        const answer = await fetch(`${url}/latest`, { headers });
        return [answer.status, JSON.stringify(await answer.json())] as const;
      };
      assert.deepEqual(await ask(bearer('Reader')), [200, '{"result":{"data":{"by":"Reader"}}}']);
      const [status, text] = await ask(bearer('Other'));
      assert.ok(status === 403 && text.includes('This key lacks SERVICES:READ_ANY.'), text);
      assert.equal((await ask({}))[0], 401);
    }));

  it('guard a WebSocket, until its key is deleted', () =>
    withServer('ws', async (url) => {
      const client = `
        import { WebSocket } from 'ws';
        const socket = new WebSocket(process.env.URL, { headers: JSON.parse(process.env.HEADERS) });
        socket.on('unexpected-response', (_, response) => (console.log(response.statusCode), process.exit()));
        socket.on('open', () => socket.send('hello'));
        socket.on('message', (data) => (console.log(String(data)), socket.send('again')));
        socket.on('close', (code) => console.log(code));
        socket.on('message', () => process.env.STAYS || socket.terminate());`;
      const connect = (headers: object, stays = '') =>
        spawn(process.execPath, ['--input-type=module', '-e', client], {
          cwd: folder,
          env: { ...env, URL: url.replace('http', 'ws'), HEADERS: JSON.stringify(headers), STAYS: stays },
        });
      assert.match((await finished(connect(bearer('Reader')))).stdout, /^Reader says hello\n/);
      assert.equal((await finished(connect(bearer('Other')))).stdout, '403\n');
      assert.equal((await finished(connect({}))).stdout, '401\n');
      const cli = join(folder, 'node_modules/.bin/svc-api');
      const create = ['apikey', 'create', 'Soon deleted', '--permissions', 'SERVICES:READ_ANY'];
      const secret = (await mustRun(cli, create, { cwd: folder, env })).trim();
      const staying = connect({ authorization: `Bearer ${secret}` }, 'yes');
      const end = finished(staying);
      await new Promise((resolve) => staying.stdout.once('data', resolve));
      await mustRun(cli, ['apikey', 'delete', 'Soon deleted', '--yes'], { cwd: folder, env });
      assert.match((await end).stdout, /\n1008\n$/);
    }));

  it('guard calls of gRPC', () =>
    withServer('grpc', async (url) => {
      const client = `
        import { Client, credentials, Metadata } from '@grpc/grpc-js';
        const client = new Client(process.env.AT, credentials.createInsecure());
        const metadata = new Metadata();
        for (const [name, value] of Object.entries(JSON.parse(process.env.HEADERS))) metadata.set(name, value);
        const json = (value) => Buffer.from(JSON.stringify(value));
        client.makeUnaryRequest('/backups.Backups/Latest', json, String, {}, metadata, (error, answer) => {
          console.log(answer ?? error.code + ' ' + error.details);
          client.close();
        });`;
      const ask = async (headers: object) => {
        const more = { AT: url.replace('http://', ''), HEADERS: JSON.stringify(headers) };
        return mustRun(process.execPath, ['--input-type=module', '-e', client], {
          cwd: folder,
          env: { ...env, ...more },
        });
      };
      assert.equal(await ask(bearer('Reader')), '{"by":"Reader"}\n');
      assert.equal(await ask(bearer('Other')), '7 This key lacks SERVICES:READ_ANY.\n');
      assert.match(await ask({}), /^16 Missing API key/);
    }));

  it('check requests of the Fetch standard, and of no protocol', async () => {
    const program = `
      import { handle, isAllowed } from './out/check.js';
      const answers = [];
      for (const key of [process.env.READER, process.env.OTHER, 'nonsense']) {
        const headers = { authorization: 'Bearer ' + key };
        const answer = await handle(new Request('http://localhost/', { headers }), '192.0.2.1');
        const [gets, deletes] = [false, true].map((deletes) => isAllowed({ key, from: '192.0.2.1', deletes }));
        answers.push([answer.status, await answer.json(), await gets, await deletes]);
      }
      console.log(JSON.stringify(answers));
      process.exit();`;
    const more = { READER: secrets['Reader'], OTHER: secrets['Other'] };
    const said = await mustRun(process.execPath, ['--input-type=module', '-e', program], {
      cwd: folder,
      env: { ...env, ...more },
    });
    const [reader, other, nonsense] = JSON.parse(said) as [number, object, boolean, boolean][];
    assert.deepEqual(reader, [200, { name: 'Reader', owner: null, canRestart: false, mayDo: 3 }, true, false]);
    const lacks = { error: { code: 'FORBIDDEN', message: 'This key lacks SERVICES:READ_ANY.' } };
    assert.deepEqual(other, [403, lacks, false, false]);
    assert.deepEqual(nonsense, [
      401,
      { error: { code: 'UNAUTHENTICATED', message: 'The API key is not valid.' } },
      false,
      false,
    ]);
  });

  it('check keys in a Worker, by a server', () =>
    withServer('service', async (server) => {
      const cli = join(folder, 'node_modules/.bin/svc-api');
      const create = ['apikey', 'create', 'Worker', '--permissions', 'API_KEY:READ_ANY'];
      const token = (await mustRun(cli, create, { cwd: folder, env })).trim();
      const program = `
        import worker from './out/worker.js';
        const { KEYS_SERVER, KEYS_TOKEN, READER, OTHER } = process.env;
        for (const key of [READER, OTHER, 'nonsense']) {
          const request = new Request('http://localhost/', { headers: { authorization: 'Bearer ' + key } });
          const answer = await worker.fetch(request, { KEYS_SERVER, KEYS_TOKEN });
          console.log(answer.status, await answer.text());
        }`;
      const more = { KEYS_SERVER: server, KEYS_TOKEN: token, READER: secrets['Reader'], OTHER: secrets['Other'] };
      assert.equal(
        await mustRun(process.execPath, ['--input-type=module', '-e', program], {
          cwd: folder,
          env: { ...env, ...more },
        }),
        '200 {"by":"Reader"}\n' +
          '403 {"code":"FORBIDDEN","message":"This key lacks SERVICES:READ_ANY."}\n' +
          '401 {"code":"UNAUTHENTICATED","message":"The API key is not valid."}\n',
      );
    }));

  it('manage keys', async () => {
    const said = await mustRun(process.execPath, ['out/keys.js'], { cwd: folder, env });
    assert.equal(
      said,
      'The key of Invoices has 66 characters. You see it only here.\nLimits:  -> 100/m\nA new secret: true\n' +
        'Found: Invoices\nNO_GRANTS: An API key needs at least one role or permission.\nThe API key is not valid.\n',
    );
  });

  it('serve the whole service', () =>
    withServer('service', async (url) => {
      const headers = { ...bearer('Reader'), 'content-type': 'application/json' };
      const answer = await fetch(`${url}/graphql`, { method: 'POST', headers, body: '{"query":"{ me { name } }"}' });
      assert.deepEqual(await answer.json(), { data: { me: { name: 'Reader' } } });
      // A GraphQL endpoint answers with GraphQL errors.
      const refused = await fetch(`${url}/graphql`, { method: 'POST' });
      const { errors } = (await refused.json()) as { errors: [{ extensions: { code: string } }] };
      assert.deepEqual([refused.status, errors[0].extensions.code], [401, 'UNAUTHENTICATED']);
    }));

  it('bring a part of the schema', async () => {
    const program = "import hook from './out/hook.js'; console.log((await hook.call({}, {})).resources.join());";
    assert.equal(await mustRun(process.execPath, ['--input-type=module', '-e', program], { cwd: folder }), 'BACKUP\n');
  });
});
