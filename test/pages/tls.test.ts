import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { pairOf, writePair } from '../support/certificates.ts';
import { testCli } from '../support/cli.ts';
import { blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv } from '../support/process.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';
import { CERTIFICATE } from '../support/tls-proxy.ts';
import { until } from '../support/until.ts';

const PAGE = 'docs/deploying.md';
const QUERY = '{"query":"{ me { name } }"}';
const JSON_TYPE = { 'content-type': 'application/json' };

interface Reply {
  status: number;
  body: string;
  headers: Record<string, unknown>;
}

/** Sends a request to localhost over TLS. */
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

/** Writes an nginx configuration with one server, and returns nginx's arguments. */
function nginxWith(server: string, folder: string): string[] {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`);
  const file = join(folder, 'nginx.conf');
  // It needs access to the files of this user.
  const user = process.getuid!() === 0 ? 'user root; ' : '';
  const main = `${user}daemon off; pid ${folder}/pid; error_log stderr; events {}`;
  writeFileSync(file, `${main} http { access_log off; ${paths.join(' ')}\n${server} }`);
  return ['-p', folder, '-e', 'stderr', '-c', file];
}

/** Runs a proxy, and calls `ask` once it answers. */
async function withProxy(
  program: string,
  args: readonly string[],
  isReady: () => Promise<boolean>,
  use: () => Promise<void>,
): Promise<void> {
  const folder = tempFolder();
  const path = `${process.env['PATH']}:/usr/sbin`;
  const env = cleanEnv({ HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, PATH: path });
  const proxy = spawn(program, args, { env, stdio: 'ignore' });
  try {
    await until(() => isReady().catch(() => false));
    await use();
  } finally {
    proxy.kill();
    await once(proxy, 'exit');
  }
}

describe('docs/deploying.md', () => {
  let server: ServeProcess;
  let key: string;
  let database: string;
  before(async () => {
    const cli = testCli();
    ({ database } = cli);
    ({ key } = await cli.given('Viewer'));
    server = await startServe(database);
  });
  after(() => server.stop());

  it('has a command that serves keys by TLS', async () => {
    const files = writePair(pairOf('first'));
    const args = blockWith('--tls-cert', PAGE)
      .replace('8443', '0')
      .replace('/etc/ssl/keys.example.org.pem', files.cert)
      .replace('/etc/ssl/private/keys.example.org.key', files.key)
      .trim()
      .split(' ');
    assert.deepEqual(args.splice(0, 2), ['svc-api', 'serve']);
    const byTls = await startServe(database, args);
    const reply = await ask(
      Number(new URL(byTls.url).port),
      '/graphql',
      { ...JSON_TYPE, authorization: `Bearer ${key}` },
      QUERY,
    );
    assert.deepEqual([reply.status, reply.body], [200, '{"data":{"me":{"name":"Viewer"}}}']);
    await byTls.stop();
  });

  it('links to the nginx settings for a Unix socket', async function () {
    needsPrograms(this, 'nginx');
    const [folder, port] = [tempFolder(), await freePort()];
    const [, variable, path] = /^Environment=(\w+)=(.*)$/m.exec(blockWith('SVC_API_SOCKET', PAGE, 'ini'))!;
    const socket = join(folder, 'api.sock');
    const bySocket = await startServe(database, [], { [variable!]: socket });
    const location = blockWith('http://unix:', PAGE, 'nginx').replace(path!, socket);
    const args = nginxWith(`server { listen 127.0.0.1:${port}; ${location} }`, folder);
    const url = `http://127.0.0.1:${port}`;
    await withProxy(
      'nginx',
      args,
      async () => (await fetch(`${url}/readyz`)).ok,
      async () => {
        const headers = { ...JSON_TYPE, authorization: `Bearer ${key}` };
        const reply = await fetch(`${url}/graphql`, { method: 'POST', headers, body: QUERY });
        assert.equal(await reply.text(), '{"data":{"me":{"name":"Viewer"}}}');
      },
    );
    await bySocket.stop();
  });

  it('says that the Host may be any', async () => {
    const sent = get(`${server.url}/readyz`, { headers: { host: 'keys.example.org' } });
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    assert.equal(response.statusCode, 200);
  });
});
