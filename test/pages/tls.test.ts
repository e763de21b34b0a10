import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { blocksOf } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv, ROOT } from '../support/process.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';
import { CERTIFICATE } from '../support/tls-proxy.ts';
import { until } from '../support/until.ts';

const PAGE = 'docs/tls.md';
const KEY_FILE = join(ROOT, 'test/fixtures/tls/key.pem');

interface Reply {
  status: number;
  body: string;
  headers: Record<string, unknown>;
}

/** Sends a request to localhost by TLS. */
async function ask(port: number, path: string, headers: Record<string, string>, body?: string): Promise<Reply> {
  const sent = request({
    host: 'localhost',
    port,
    path,
    headers,
    method: body ? 'POST' : 'GET',
    ca: readFileSync(CERTIFICATE),
  });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  return { status: response.statusCode!, body: text, headers: response.headers };
}

/** The proxies of the page, and how each is told where it is here. */
const PROXIES = [
  {
    program: 'nginx',
    configure: (folder: string, port: number, upstream: string) => {
      const server = blocksOf(PAGE, 'nginx')[0]!
        .replace('listen 443', `listen ${port}`)
        .replace('/etc/ssl/keys.example.org.pem', CERTIFICATE)
        .replace('/etc/ssl/private/keys.example.org.key', KEY_FILE)
        .replace('http://127.0.0.1:4000', upstream);
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`);
      const file = join(folder, 'nginx.conf');
      const main = `daemon off; pid ${folder}/pid; error_log stderr; events {}`;
      writeFileSync(file, `${main} http { access_log off; ${paths.join(' ')}\n${server} }`);
      return ['-p', folder, '-e', 'stderr', '-c', file];
    },
  },
  {
    program: 'caddy',
    configure: (folder: string, port: number, upstream: string) => {
      const site = blocksOf(PAGE, 'text')[0]!
        .replace('keys.example.org {', `localhost:${port} {\n\ttls ${CERTIFICATE} ${KEY_FILE}`)
        .replace('127.0.0.1:4000', upstream.replace('http://', ''));
      const file = join(folder, 'Caddyfile');
      writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
      return ['run', '--config', file, '--adapter', 'caddyfile'];
    },
  },
];

describe('docs/tls.md', () => {
  let server: ServeProcess;
  let key: string;
  before(async () => {
    const cli = testCli();
    ({ key } = await cli.given('Viewer'));
    server = await startServe(cli.database);
  });
  after(() => server.stop());

  for (const { program, configure } of PROXIES) {
    it(`has what ${program} needs to serve keys by TLS`, async function () {
      needsPrograms(this, program);
      const [folder, port] = [tempFolder(), await freePort()];
      const path = `${process.env['PATH']}:/usr/sbin`;
      const env = cleanEnv({ HOME: folder, XDG_DATA_HOME: folder, PATH: path });
      const proxy = spawn(program, configure(folder, port, server.url), { env, stdio: 'ignore' });
      try {
        await until(() =>
          ask(port, '/readyz', {}).then(
            ({ status }) => status === 200,
            () => false,
          ),
        );
        const body = '{"query":"{ me { name } }"}';
        const json = { 'content-type': 'application/json' };
        const reply = await ask(port, '/graphql', { ...json, authorization: `Bearer ${key}` }, body);
        assert.deepEqual([reply.status, reply.body], [200, '{"data":{"me":{"name":"Viewer"}}}']);
        assert.equal(reply.headers['cache-control'], 'no-store');
        const refused = await ask(port, '/graphql', json, body);
        assert.deepEqual([refused.status, refused.headers['www-authenticate']], [401, 'Bearer realm="svc-api"']);
      } finally {
        proxy.kill();
        await once(proxy, 'exit');
      }
    });
  }

  it('says that the Host may be any', async () => {
    const sent = get(`${server.url}/readyz`, { headers: { host: 'keys.example.org' } });
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    assert.equal(response.statusCode, 200);
  });
});
