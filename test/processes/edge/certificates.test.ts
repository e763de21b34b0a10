import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEdge } from '../../../src/index.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { pairOf, writePair } from '../../support/certificates.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { runCli } from '../../support/process.ts';
import { type ServeProcess, startEdge, startServe } from '../../support/serve.ts';
import { tempFolder } from '../../support/temp.ts';

describe('an edge of an origin that asks for certificates', () => {
  let test: TestKeys;
  let origin: ServeProcess;
  let address: string;
  let tokenFile: string;
  let secret: string;
  const [own, other] = [writePair(pairOf('first')), writePair(pairOf('other'))];
  const ca = own.cert;

  before(async () => {
    test = await openTestKeys();
    test.time.now = Date.now();
    const folder = tempFolder();
    tokenFile = join(folder, 'edge.key');
    const { key: token } = await test.keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR);
    writeFileSync(tokenFile, token, { mode: 0o600 });
    ({ key: secret } = await test.keys.create({ name: 'Key', roles: ['VIEWER'] }, OPERATOR));
    const config = join(folder, 'svc-api.yaml');
    writeFileSync(config, `tls: { cert: "${own.cert}", key: "${own.key}", clientCa: "${own.cert}" }\n`, {
      mode: 0o600,
    });
    origin = await startServe(test.database, ['--port', '0', '--config', config]);
    // The certificate is for this name.
    address = `https://localhost:${new URL(origin.url).port}`;
  });

  after(async () => {
    await origin.stop();
    await test.store.close();
  });

  it('follows with one that the origin has signed', async () => {
    const edge = await startEdge(address, tokenFile, '--ca', ca, '--client-cert', own.cert, '--client-key', own.key);
    try {
      const { status } = await fetch(`${edge.url}/auth/traefik?permission=INFO:READ_ANY`, {
        headers: {
          Authorization: `Bearer ${secret}`,
          'X-Forwarded-Host': 'app.example.org',
          'X-Forwarded-Method': 'GET',
          'X-Forwarded-Proto': 'https',
          'X-Forwarded-Uri': '/',
        },
      });
      assert.equal(status, 200);
    } finally {
      await edge.stop();
    }
  });

  it('does not start without one, with one of others, nor with one that cannot be read', async () => {
    const run = async (...args: string[]) => {
      const place = ['--origin', address, '--token-file', tokenFile, '--port', '0'];
      const { code, stderr } = await runCli([
        'edge',
        ...place,
        ...(args.includes('--ca') ? [] : ['--ca', ca]),
        ...args,
      ]);
      assert.notEqual(code, 0);
      return stderr;
    };
    assert.match(await run(), /no certificate that "tls\.clientCa" of the server signs: give .* --client-cert/);
    const wrong = await run('--client-cert', other.cert, '--client-key', other.key);
    assert.match(wrong, /no certificate that "tls\.clientCa"/);
    assert.match(await run('--client-cert', '/none', '--client-key', own.key), /--client-cert, \/none, cannot be read/);
    assert.match(await run('--client-cert', own.cert, '--client-key', other.key), /certificates .* cannot be used/);
    assert.match(await run('--ca', tokenFile), /certificates .* cannot be used/);
    assert.match(await run('--client-cert', own.cert), /--client-key need each other/);
  });

  it('is the same in another program', async () => {
    const options = { origin: address, tokenFile, ca };
    const keys = await openEdge({ ...options, clientCert: own.cert, clientKey: own.key });
    const { ok } = await keys.check({ secret }, { permission: 'INFO:READ_ANY' });
    await keys.close();
    assert.ok(ok);
    await assert.rejects(openEdge(options), { code: 'FORBIDDEN' });
    await assert.rejects(openEdge({ ...options, clientCert: other.cert, clientKey: other.key }), { code: 'FORBIDDEN' });
    await assert.rejects(openEdge({ ...options, clientCert: own.cert }), { code: 'OPTION_INVALID' });
    const mixed = { ...options, clientCert: own.cert, clientKey: other.key };
    await assert.rejects(openEdge(mixed), { code: 'CONFIG_INVALID' });
    await assert.rejects(openEdge({ ...options, clientCert: '/none', clientKey: own.key }), {
      code: 'CONFIG_UNAVAILABLE',
    });
  });
});
