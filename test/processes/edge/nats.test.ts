import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEdge } from '../../../src/index.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { type NatsServer, startNats, stopNats } from '../../support/nats.ts';
import { runCli } from '../../support/process.ts';
import { type ServeProcess, startListening } from '../../support/serve.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

describe('svc-api edge, by NATS', () => {
  let test: TestKeys;
  let nats: NatsServer;
  let config: string;
  let tokenFile: string;
  let origin: ServeProcess;
  let edge: ServeProcess;
  const running: ServeProcess[] = [];

  const start = async (...args: string[]) => {
    const started = await startListening([...args, '--port', '0', '--config', config], {});
    running.push(started);
    return started;
  };
  const serve = () => start('serve', '--database', test.database);
  const create = async (name: string) => (await test.keys.create({ name, roles: ['VIEWER'] }, OPERATOR)).key;
  const remove = async (name: string) => {
    const { code, stderr } = await runCli(['apikey', 'delete', name, '--yes', '--database', test.database]);
    assert.equal(code, 0, stderr);
  };
  const statusOf = async (secret: string) => {
    const headers = {
      Authorization: `Bearer ${secret}`,
      'X-Forwarded-Host': 'app.example.org',
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Uri': '/',
    };
    return (await fetch(`${edge.url}/auth/traefik?permission=INFO:READ_ANY`, { headers })).status;
  };

  beforeEach(async () => {
    test = await openTestKeys();
    test.time.now = Date.now();
    nats = await startNats();
    const folder = tempFolder();
    [config, tokenFile] = [join(folder, 'svc-api.yaml'), join(folder, 'edge.key')];
    writeFileSync(config, `feed: { nats: { servers: ['${nats.url}'] } }\n`, { mode: 0o600 });
    const { key } = await test.keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR);
    writeFileSync(tokenFile, `${key}\n`, { mode: 0o600 });
    origin = await serve();
    edge = await start('edge', '--token-file', tokenFile, '--max-stale', '1s');
  });

  afterEach(async () => {
    for (const each of running.splice(0)) {
      each.kill('SIGCONT');
      await each.stop('SIGKILL');
    }
    await test.store.close();
    await stopNats();
  });

  it('is what the library opens in another program', async () => {
    const secret = await create('One');
    const keys = await openEdge({ feed: { nats: { servers: [nats.url] } }, tokenFile });
    try {
      await until(async () => (await keys.check({ secret }, { permission: 'INFO:READ_ANY' })).ok);
      await remove('One');
      const checked = await keys.check({ secret });
      assert.equal(checked.ok ? 200 : checked.status, 401);
      assert.equal(keys.location, nats.url);
    } finally {
      await keys.close();
    }
    const wrong = { feed: { nats: { servers: [nats.url] } }, token: 'svc_nothing' };
    await assert.rejects(openEdge(wrong), { code: 'UNAUTHENTICATED' });
  });

  it('refuses a key once the command has returned that revokes it, also where the edge was stopped', async () => {
    const secrets = [await create('One'), await create('Two')] as const;
    for (const secret of secrets) await until(async () => (await statusOf(secret)) === 200);
    await remove('One');
    // A pause of the machine can outlast the lease.
    assert.notEqual(await statusOf(secrets[0]), 200);
    await until(async () => (await statusOf(secrets[0])) === 401);
    edge.kill('SIGSTOP');
    await remove('Two');
    // Sent before the edge resumes, so that it is the first request.
    const answer = statusOf(secrets[1]);
    edge.kill('SIGCONT');
    assert.ok([401, 503].includes(await answer));
    await until(async () => (await statusOf(secrets[1])) === 401);
  });

  it('goes on where the process of the origin is killed or stopped that publishes, and another one is there', async () => {
    const secrets = [await create('One'), await create('Two'), await create('Three')] as const;
    for (const secret of secrets) await until(async () => (await statusOf(secret)) === 200);
    const other = await serve();
    await origin.stop('SIGKILL');
    await remove('One');
    assert.notEqual(await statusOf(secrets[0]), 200);
    await until(async () => (await statusOf(secrets[1])) === 200);
    const third = await serve();
    other.kill('SIGSTOP');
    await remove('Two');
    assert.notEqual(await statusOf(secrets[1]), 200);
    await until(async () => (await statusOf(secrets[2])) === 200);
    // It must not overwrite a newer key with an old one.
    other.kill('SIGCONT');
    await remove('Three');
    assert.notEqual(await statusOf(secrets[2]), 200);
    await third.stop();
    await until(async () => (await statusOf(secrets[0])) === 401);
  });
});
