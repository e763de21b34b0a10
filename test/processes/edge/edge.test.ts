import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { freePort } from '../../support/port.ts';
import { runCli } from '../../support/process.ts';
import { startEdge, startServe, type ServeProcess } from '../../support/serve.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

/** A lease that a test lets expire, and the longest possible one. A store grants at most 2 s. */
const [LEASE, LONG_LEASE] = ['1s', '1m'];

describe('svc-api edge', () => {
  let test: TestKeys;
  let origin: ServeProcess;
  let edge: ServeProcess;
  let tokenFile: string;
  const running: ServeProcess[] = [];

  const create = async (name: string, more: Partial<NewKey> = {}) => {
    const { key: secret, apiKey: key } = await test.keys.create({ name, roles: ['VIEWER'], ...more }, OPERATOR);
    return { secret, id: key.id };
  };
  /** The status and code for a secret from an address. */
  const ask = async (url: string, secret: string, address = '203.0.113.7', permission = 'INFO:READ_ANY') => {
    const answer = await fetch(`${url}/auth/traefik?permission=${permission}`, {
      headers: {
        Authorization: `Bearer ${secret}`,
        'X-Forwarded-For': address,
        'X-Forwarded-Host': 'app.example.org',
        'X-Forwarded-Method': 'GET',
        'X-Forwarded-Proto': 'https',
        'X-Forwarded-Uri': '/',
      },
    });
    const text = await answer.text();
    const said = ['x-auth-key-name', 'x-auth-roles', 'www-authenticate'].map((name) => answer.headers.get(name));
    return { status: answer.status, said, text };
  };
  const statusOf = async (url: string, secret: string) => (await ask(url, secret)).status;
  const svcApi = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli(['apikey', ...args, '--database', test.database]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const start = async (starting: Promise<ServeProcess>) => {
    const started = await starting;
    running.push(started);
    return started;
  };

  const startOriginAgain = () => start(startServe(test.database, ['--port', new URL(origin.url).port]));

  beforeEach(async () => {
    test = await openTestKeys();
    test.time.now = Date.now();
    tokenFile = join(tempFolder(), 'edge.key');
    const { secret } = await create('Edge', { roles: [], permissions: ['EDGE:READ_ANY'] });
    writeFileSync(tokenFile, `${secret}\n`, { mode: 0o600 });
    // Not an ephemeral port, which another connection could take while the origin is down.
    origin = await start(startServe(test.database, ['--port', String(await freePort())]));
    edge = await start(startEdge(origin.url, tokenFile, '--max-stale', LONG_LEASE));
  });

  afterEach(async () => {
    for (const each of running.splice(0)) {
      each.kill('SIGCONT');
      await each.stop('SIGKILL');
    }
    await test.store.close();
  });

  it('says of each key what its origin says', async () => {
    const parent = await create('Parent', { roles: ['ADMIN'] });
    const asParent = await test.keys.authenticator.confirm(parent.secret);
    assert.ok('principal' in asParent);
    const child = await test.keys.create({ name: 'Child', roles: ['VIEWER'] }, asParent.principal);
    test.time.now -= 7_200_000;
    const ended = await create('Ended', { expiresIn: '1h' });
    test.time.now += 7_200_000;
    const secrets = {
      parent: parent.secret,
      child: child.key,
      guest: (await create('Guest', { roles: ['GUEST'] })).secret,
      here: (await create('Here', { allowFrom: ['203.0.113.0/24'] })).secret,
      elsewhere: (await create('Elsewhere', { allowFrom: ['198.51.100.0/24'] })).secret,
      limited: (await create('Limited', { limits: ['1/d'] })).secret,
      ended: ended.secret,
      unknown: (await create('Unknown')).secret.replace(/^svc_/, 'svc_'),
      none: 'svc_nothing',
    };
    const rotated = await create('Rotated');
    const { key: next } = await test.keys.rotate(rotated.id, { grace: '1h' }, OPERATOR);
    const finished = await create('Finished');
    const { key: newest } = await test.keys.rotate(finished.id, { grace: '1h' }, OPERATOR);
    await test.keys.finishRotation(finished.id, OPERATOR);
    const disabled = await create('Disabled');
    await test.keys.setEnabled(disabled.id, false, OPERATOR);
    const all = Object.entries({
      ...secrets,
      rotated: rotated.secret,
      next,
      finished: finished.secret,
      newest,
      disabled: disabled.secret,
    });
    await test.keys.delete([(await test.keys.findByName('Unknown', OPERATOR))!.id], OPERATOR);
    const seen = new Map<string, number>();
    for (const [name, secret] of all) {
      if (name === 'limited') continue;
      const said = await ask(origin.url, secret);
      await until(async () => (await statusOf(edge.url, secret)) === said.status);
      assert.deepEqual(await ask(edge.url, secret), said, name);
      seen.set(name, said.status);
    }
    assert.deepEqual(new Set(seen.values()), new Set([200, 401, 403]));
    // The limit is one request, across all servers.
    assert.equal(await statusOf(edge.url, secrets.limited), 200);
    assert.equal(await statusOf(origin.url, secrets.limited), 429);
    assert.equal(await statusOf(edge.url, secrets.limited), 429);
    // Its child, which the edge has cached, is disabled too.
    await svcApi('disable', 'Parent');
    for (const { url } of [origin, edge]) assert.equal(await statusOf(url, child.key), 401);
  });

  it('refuses a key once the command has returned that revokes it', async () => {
    for (const [index, verb] of (['delete', 'disable', 'delete', 'disable'] as const).entries()) {
      const { secret } = await create(`Key ${index}`);
      await until(async () => (await statusOf(edge.url, secret)) === 200);
      await svcApi(verb, `Key ${index}`, ...(verb === 'delete' ? ['--yes'] : []));
      assert.equal(await statusOf(edge.url, secret), 401);
    }
  });

  it('that was stopped lets a change return, and does not accept the key when it goes on', async () => {
    const { secret } = await create('Key');
    await edge.stop();
    const stopped = await start(startEdge(origin.url, tokenFile, '--max-stale', LEASE));
    await until(async () => (await statusOf(stopped.url, secret)) === 200);
    stopped.kill('SIGSTOP');
    await svcApi('delete', 'Key', '--yes');
    // Sent before the edge resumes, so that it is the first request.
    const answer = statusOf(stopped.url, secret);
    stopped.kill('SIGCONT');
    assert.ok([401, 503].includes(await answer));
    await until(async () => (await statusOf(stopped.url, secret)) === 401);
  });

  it('answers nothing once its origin is gone for longer than its lease, and goes on once that is back', async () => {
    const { secret } = await create('Key');
    const short = await start(startEdge(origin.url, tokenFile, '--max-stale', LEASE));
    // A busy machine can take even longer than the longer lease.
    for (let isLonger = false; !isLonger;) {
      for (const { url } of [edge, short]) await until(async () => (await statusOf(url, secret)) === 200);
      await origin.stop('SIGKILL');
      await until(async () => (await statusOf(short.url, secret)) === 503);
      isLonger = (await statusOf(edge.url, secret)) === 200;
      if (!isLonger) origin = await startOriginAgain();
    }
    await until(async () => (await statusOf(edge.url, secret)) === 503);
    assert.equal((await fetch(`${short.url}/readyz`)).status, 503);
    assert.equal((await fetch(`${short.url}/healthz`)).status, 200);
    await startOriginAgain();
    await until(async () => (await statusOf(short.url, secret)) === 200);
    await until(async () => (await fetch(`${short.url}/readyz`)).status === 200);
  });

  it('that starts while its origin is away is not ready, refuses, and answers once it has loaded all keys', async () => {
    const { secret } = await create('Key');
    await edge.stop('SIGKILL');
    await origin.stop('SIGKILL');
    const again = await start(startEdge(origin.url, tokenFile, '--max-stale', LONG_LEASE));
    for (const held of [secret, 'svc_nothing']) assert.equal(await statusOf(again.url, held), 503);
    assert.equal((await fetch(`${again.url}/readyz`)).status, 503);
    assert.equal((await fetch(`${again.url}/healthz`)).status, 200);
    await startOriginAgain();
    await until(async () => (await fetch(`${again.url}/readyz`)).status === 200);
    assert.equal(await statusOf(again.url, secret), 200);
    assert.equal(await statusOf(again.url, 'svc_nothing'), 401);
  });

  it('is a guard in front of an upstream, which gets nothing before all keys are loaded', async () => {
    const { secret } = await create('Key');
    let passed = 0;
    const upstream = createServer((incoming, outgoing) => {
      passed += 1;
      outgoing.end(incoming.headers['x-auth-key-name']);
    });
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
    await origin.stop('SIGKILL');
    const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const asGuard = [address, '--permission', 'INFO:READ_ANY', '--max-stale', LONG_LEASE];
    const guard = await start(startEdge(origin.url, tokenFile, ...asGuard));
    const get = (held: string) => fetch(guard.url, { headers: { Authorization: `Bearer ${held}` } });
    assert.equal((await get(secret)).status, 503);
    assert.equal(passed, 0);
    await startOriginAgain();
    await until(async () => (await get(secret)).status === 200);
    assert.equal(await (await get(secret)).text(), 'Key');
    assert.equal((await get('svc_nothing')).status, 401);
    upstream.close();
  });

  it('reports to its origin what keys were used for', async () => {
    const { secret, id } = await create('Key');
    await until(async () => (await statusOf(edge.url, secret)) === 200);
    await edge.stop();
    const usage = await test.keys.useOf([id]);
    assert.ok(usage.get(id)!.uses >= 1);
  });

  it('holds requests to limits with other edges and the origin', async () => {
    const { secret } = await create('Limited', { limits: ['60/month'] });
    const other = await start(startEdge(origin.url, tokenFile, '--max-stale', LONG_LEASE));
    await until(async () => (await statusOf(edge.url, secret)) !== 401);
    await until(async () => (await statusOf(other.url, secret)) !== 401);
    const before = 2;
    let accepted = 0;
    const spend = async ({ url }: ServeProcess) => {
      for (let count = 0; count < 60; count += 1) if ((await statusOf(url, secret)) === 200) accepted += 1;
    };
    await Promise.all([origin, edge, other].map(spend));
    assert.ok(accepted + before <= 60, `${accepted}`);
    assert.ok(accepted >= 30, `${accepted}`);
  });

  it('is refused with options that do not fit', async () => {
    const { secret } = await create('No edge');
    const file = join(tempFolder(), 'no-edge.key');
    writeFileSync(file, secret, { mode: 0o600 });
    const run = async (args: string[], env = {}) => {
      const { code, stderr } = await runCli(['edge', '--port', '0', ...args], { env });
      return { code, stderr };
    };
    const at = (url: string, ...args: string[]) => run(['--origin', url, '--token-file', tokenFile, ...args]);
    assert.match((await run(['--origin', origin.url, '--token-file', file])).stderr, /EDGE:READ_ANY/);
    assert.match((await at('http://keys.example.org')).stderr, /without encryption.*--insecure/s);
    assert.match((await at(origin.url, '--max-stale', '50ms')).stderr, /--max-stale is "50ms"/);
    assert.match((await at(origin.url, '--client-cert', 'a.pem')).stderr, /--client-key/);
    assert.match((await at(origin.url, '--any-key')).stderr, /--any-key is for a guard, but nothing is guarded/);
    assert.match((await at(origin.url, '--timeout', '5')).stderr, /--timeout is for a guard, but nothing is guarded/);
    assert.match((await at(origin.url, 'http://127.0.0.1:9')).stderr, /Pass --resource, --permission or --any-key/);
    writeFileSync(file, 'not a secret\n', { mode: 0o644 });
    const open = await run(['--origin', origin.url, '--token-file', file]);
    assert.equal(open.code, 2);
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'sign-in: on\n', { mode: 0o600 });
    assert.match(
      (await at(origin.url, '--config', config)).stderr,
      / sets "sign-in", but people cannot sign in at an edge/,
    );
  });
});
