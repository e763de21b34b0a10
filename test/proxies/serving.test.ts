import assert from 'node:assert/strict';
import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { testCli } from '../support/cli.ts';
import { configFile } from '../support/config-file.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { ROOT } from '../support/process.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';
import { CERTIFICATE } from '../support/tls-proxy.ts';
import { until } from '../support/until.ts';
import { ask } from '../support/proxies/client.ts';
import {
  CONFIGURATIONS as GUARDING,
  KEY_FILE,
  SITE,
  writeCaddy,
  writeNginx,
} from '../support/proxies/configurations.ts';
import { end, startProgram } from '../support/proxies/guarded-site.ts';

const PAGE = 'docs/deploying.md';
const STREAMING_PAGE = 'docs/agents.md';

/** A configuration on the page. */
interface Shown {
  title: string;
  program: string;
  /** Writes it with this machine's paths. @returns the program's arguments */
  write: (folder: string, port: number, upstream: string) => string[];
}

/** The socket of `serve`, if the proxy uses one. */
const socketIn = (folder: string) => join(folder, 'api.sock');

const CONFIGURATIONS: readonly Shown[] = [
  {
    title: 'nginx',
    program: 'nginx',
    write: (folder, port, upstream) =>
      writeNginx(
        blockWith('listen 443', PAGE, 'nginx')
          .replace('listen 443', `listen 127.0.0.1:${port}`)
          .replace('/etc/ssl/keys.example.org.pem', CERTIFICATE)
          .replace('/etc/ssl/private/keys.example.org.key', KEY_FILE)
          .replace('127.0.0.1:4000', upstream),
        { folder },
      ),
  },
  {
    title: 'nginx on a socket',
    program: 'nginx',
    write(folder, port) {
      const location = blockWith('unix:', PAGE, 'nginx').replace('/run/svc-api/api.sock', socketIn(folder));
      const tls = `ssl_certificate ${CERTIFICATE}; ssl_certificate_key ${KEY_FILE};`;
      return writeNginx(`server { listen 127.0.0.1:${port} ssl; ${tls} ${location} }`, { folder });
    },
  },
  {
    title: 'caddy',
    program: 'caddy',
    write: (folder, port, upstream) =>
      writeCaddy(
        blockWith('reverse_proxy', PAGE, 'caddyfile')
          .replace(
            'keys.example.org {',
            `https://${SITE}:${port} {\n\tbind 127.0.0.1\n\ttls ${CERTIFICATE} ${KEY_FILE}`,
          )
          .replace('127.0.0.1:4000', upstream),
        { folder },
      ),
  },
];

const QUERY = '{"query":"{ me { name } }"}';
const POST = { method: 'POST', path: '/graphql', body: QUERY };
const TYPE = ['Content-Type', 'application/json'] as const;

for (const { title, program, write } of CONFIGURATIONS) {
  describe(`${title} in front of serve, as docs/deploying.md has it`, () => {
    let [server, proxy, port, key] = [] as unknown as [ServeProcess, ChildProcess, number, string];
    before(async function () {
      needsPrograms(this, program);
      const cli = testCli();
      ({ key } = await cli.given('Viewer'));
      const folder = tempFolder();
      const address = title.endsWith('socket') ? ['--socket', socketIn(folder)] : ['--port', '0'];
      server = await startServe(cli.database, [...address, '--config', configFile('trust: [127.0.0.1]\n')]);
      port = await freePort();
      proxy = await startProgram(program, write(folder, port, new URL(server.url).host), port, folder);
    });
    after(async () => {
      if (proxy) await end(proxy, 'SIGTERM');
      await server?.stop();
    });
    const send = (secret: string, ...headers: [string, string][]) =>
      ask(port, { ...POST, headers: [TYPE, ['Authorization', `Bearer ${secret}`], ...headers] });

    it('gives answers and refusals', async () => {
      const { status, body, headers } = await send(key);
      assert.deepEqual([status, body], [200, '{"data":{"me":{"name":"Viewer"}}}']);
      assert.equal(headers['cache-control'], 'no-store');
      const refused = await ask(port, { ...POST, headers: [TYPE] });
      assert.deepEqual([refused.status, refused.headers['www-authenticate']], [401, 'Bearer realm="svc-api"']);
    });

    it('counts invalid keys by the address of the client, whatever the client claims', async () => {
      const statuses = new Set<number>();
      for (let attempt = 1; attempt <= 40; attempt += 1)
        statuses.add((await send(`wrong${attempt}`, ['X-Forwarded-For', `10.1.2.${attempt}`])).status);
      assert.deepEqual(statuses, new Set([401, 429]));
      assert.ok(Number((await send('wrong')).headers['retry-after']) > 0);
      assert.equal((await send(key)).status, 200);
    });
  });
}

describe('each configuration of a proxy that is there to be pasted', () => {
  it('is run by these tests, but for programs that are not to be had', () => {
    const pages = globSync(['README.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: ROOT });
    const shown = pages.flatMap((page) =>
      Array.from(readFileSync(join(ROOT, page), 'utf8').matchAll(/^```\w*\n[^]*?^```$/gm), ([block]) => block)
        .filter((block) => /^```(?:nginx|caddy|haproxy|apache)|proxy_pass|reverse_proxy|ProxyPass|httpchk/.test(block))
        .map(() => page),
    );
    const run = [...CONFIGURATIONS.map(() => PAGE), ...GUARDING.map(({ title }) => title)];
    const files = globSync('examples/{nginx,caddy,haproxy,apache}', { cwd: ROOT });
    const expected = run.map((title) => (title === 'examples/guard' ? `${title}/README.md` : title));
    // These blocks are the command's output, as `test/features/guard/proxy.test.ts` checks.
    expected.push(STREAMING_PAGE, 'docs/how-to/caddy.md');
    assert.deepEqual([...shown, ...files].toSorted(), expected.toSorted());
  });
});

describe(`nginx in front of a guard, as ${STREAMING_PAGE} has it`, () => {
  it('passes an event on while the stream goes on', async function () {
    needsPrograms(this, 'nginx');
    const service = createServer((_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: one\n\n');
    });
    await once(service.listen(0, '127.0.0.1'), 'listening');
    const [folder, port] = [tempFolder(), await freePort()];
    const upstream = `127.0.0.1:${(service.address() as AddressInfo).port}`;
    const location = blockWith('proxy_buffering', STREAMING_PAGE, 'nginx').replace('127.0.0.1:8080', upstream);
    const proxy = await startProgram(
      'nginx',
      writeNginx(`server { listen 127.0.0.1:${port}; ${location} }`, { folder }),
      port,
      folder,
    );
    const { body } = await fetch(`http://127.0.0.1:${port}/mcp`);
    const reader = body!.getReader();
    assert.equal(new TextDecoder().decode((await reader.read()).value), 'data: one\n\n');
    await reader.cancel();
    await end(proxy, 'SIGTERM');
    service.closeAllConnections();
    service.close();
  });
});

describe('HAProxy with no more than "option httpchk"', () => {
  it('takes serve for up while its store answers, and for down afterwards', async function () {
    needsPrograms(this, 'haproxy');
    const { database } = testCli();
    await testCli().run(['apikey', 'list', '--database', database]);
    const server = await startServe(database);
    const [folder, port] = [tempFolder(), await freePort()];
    const file = join(folder, 'haproxy.cfg');
    writeFileSync(
      file,
      `defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend keys
    bind 127.0.0.1:${port}
    default_backend keys
backend keys
    option httpchk
    default-server inter 50ms rise 1 fall 1
    server keys ${new URL(server.url).host} check
`,
    );
    const proxy = await startProgram('haproxy', ['-db', '-f', file], port, folder);
    const home = async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).status;
    let checks = 0;
    await until(async () => (await home()) === 200 && (checks += 1) > 20);
    truncateSync(database);
    // HAProxy itself answers for a server that is down.
    await until(async () => (await home()) === 503);
    await end(proxy, 'SIGTERM');
    await server.stop('SIGKILL');
  });
});
