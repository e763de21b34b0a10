import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { proxyNote } from '../../src/keys/basics/outgoing.ts';
import { cleanEnv, runCli } from '../support/process.ts';

const SOURCE = join(import.meta.dirname, '../../src');

describe('where the only way out is a proxy', () => {
  let proxy: Server;
  let asked: string[];
  let url: string;
  beforeEach(async () => {
    asked = [];
    proxy = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      response.writeHead(204).end();
    }).on('connect', (request, socket) => {
      asked.push(`CONNECT ${request.url}`);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  });
  afterEach(async () => {
    proxy.closeAllConnections();
    await new Promise((closed) => proxy.close(closed));
  });
  const used = () => ({
    NODE_USE_ENV_PROXY: '1',
    HTTPS_PROXY: url,
    HTTP_PROXY: url,
    https_proxy: url,
    http_proxy: url,
    no_proxy: '',
  });
  /** Runs a module's code in a new process, since Node reads these variables at the start. */
  const run = async (code: string, env: NodeJS.ProcessEnv) => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
      env: { ...cleanEnv(env) },
    });
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  const list = (env: NodeJS.ProcessEnv) =>
    runCli(['apikey', 'list', '--server', 'https://keys.invalid'], {
      env: cleanEnv({ SVC_API_KEY: `svc_${'0'.repeat(16)}_x`, ...env }),
    });
  const notice = (to: string, env: NodeJS.ProcessEnv) =>
    run(
      `const { postNotice } = await import('${SOURCE}/features/notices/post.ts');
       const options = { now: 0, version: '1', signal: new AbortController().signal };
       const answer = await postNotice({ id: 'a', body: '{}' }, { url: '${to}', keys: [] }, options);
       console.log(JSON.stringify(answer));`,
      env,
    );
  const issuerFailure = (env: NodeJS.ProcessEnv) =>
    run(
      `const { IssuerKeys } = await import('${SOURCE}/features/federation/issuer-keys.ts');
       const issuer = { url: 'https://issuer.invalid', jwks: undefined, audience: 'x', algorithms: ['ES256'] };
       console.log(JSON.stringify({ failure: await new IssuerKeys({ clock: Date.now }).failureOf(issuer) }));`,
      env,
    );

  it('commands, notices and issuers use it, and report its failures', async () => {
    const { stderr } = await list(used());
    assert.match(stderr, /through the proxy in HTTPS_PROXY/);
    assert.deepEqual(asked.splice(0), ['CONNECT keys.invalid:443']);
    assert.deepEqual(await notice('http://receiver.invalid/hook', used()), { is: 'taken', status: 204 });
    assert.deepEqual(asked.splice(0), ['POST http://receiver.invalid/hook']);
    const failed = await notice('https://receiver.invalid/hook', used());
    assert.match(failed['failure'] as string, /through the proxy in HTTPS_PROXY/);
    assert.deepEqual(asked.splice(0), ['CONNECT receiver.invalid:443']);
    assert.match((await issuerFailure(used()))['failure'] as string, /through the proxy in HTTPS_PROXY/);
    assert.deepEqual(asked, ['CONNECT issuer.invalid:443']);
  });

  it('an edge connects directly, and says so', async () => {
    const { error } = await run(
      `const { HttpFeed } = await import('${SOURCE}/features/edge/http-feed.ts');
       const feed = new HttpFeed({ origin: 'https://keys.invalid', token: 'token', leaseMs: 1000, log: console });
       const error = await feed.snapshot(new AbortController().signal).next().catch((error) => error.message);
       console.log(JSON.stringify({ error }));`,
      used(),
    );
    assert.match(error as string, /does not answer.*without the proxy/);
    assert.deepEqual(asked, []);
  });

  it('they say how to use it where Node does not', async () => {
    const env = { HTTPS_PROXY: url };
    const { stderr } = await list(env);
    assert.match(stderr, /NODE_USE_ENV_PROXY=1/);
    const failed = await notice('https://receiver.invalid/hook', env);
    assert.match(failed['failure'] as string, /NODE_USE_ENV_PROXY=1/);
    assert.match((await issuerFailure(env))['failure'] as string, /NODE_USE_ENV_PROXY=1/);
    assert.deepEqual(asked, []);
  });

  it('errors do not mention it if it does not apply to the address', () => {
    for (const [to, env] of [
      ['https://a.example.org', {}],
      ['http://a.example.org', { HTTPS_PROXY: url }],
      ['https://127.0.0.1:4000', { HTTPS_PROXY: url }],
      ['https://a.example.org', { HTTPS_PROXY: url, NO_PROXY: '*' }],
    ] as const)
      assert.equal(proxyNote(to, env), '', to);
    assert.match(proxyNote('https://a.example.org', { https_proxy: url }), /was not used/);
  });
});
