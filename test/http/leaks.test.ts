import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { allowInsecureRequests, None, processRevocationResponse, revocationRequest } from 'oauth4webapi';
import { readConfig } from '../../src/config/load-config.ts';
import { listen, type RunningServer } from '../../src/http/server.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createApp } from '../../src/service/create-app.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';

const FORM = 'application/x-www-form-urlencoded';

describeOnEach('a secret that somebody has found', () => {
  let test: TestKeys;
  let server: RunningServer;
  let github: FakeGithub;
  const { log, lines } = collectingLog();

  const start = async (alerts?: string) => {
    const read = readConfig(alerts === undefined ? {} : { alerts: { github: alerts } }, { file: '/x', resources: [] });
    assert.ok('config' in read);
    const app = await createApp({ keys: test.keys, config: read.config, failedCredentials: '3/m', log });
    server = await listen({ app, host: '127.0.0.1', port: 0 });
  };
  beforeEach(async () => {
    test = await openTestKeys();
    github = await FakeGithub.start();
    lines.length = 0;
    await start(github.address);
  });
  afterEach(async () => {
    await server.stop(0);
    await github.stop();
    await test.store.close();
  });

  const post = async (path: string, init: RequestInit) => {
    const response = await fetch(server.url + path, { method: 'POST', ...init });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const revoke = (token: string) => post('/revoke', { body: new URLSearchParams({ token }) });
  const create = (name: string) => test.keys.create({ name, roles: ['VIEWER'] }, OPERATOR);
  const entersAs = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'refused' in result ? result.refused : 'accepted';
  };
  const audit = async () =>
    (await test.keys.audit.read({}, OPERATOR))
      .filter(({ action }) => action !== 'CREATE' && action !== 'REFUSE')
      .map(({ action, actor, apiKey, address, after }) => [
        actor.kind,
        action,
        apiKey?.name,
        address,
        action === 'LEAK' ? after!['place'] : undefined,
      ])
      .toReversed();

  describe('by POST /revoke', () => {
    it('is revoked, as the secret is the proof: its key is disabled, with all that it created', async () => {
      const { secret: key, principal } = await createPrincipal(test.keys, { name: 'CI', roles: ['ADMIN'] });
      const { key: child } = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, principal);
      const as = { issuer: server.url, revocation_endpoint: `${server.url}/revoke` };
      const options = { [allowInsecureRequests]: true };
      await processRevocationResponse(await revocationRequest(as, { client_id: 'any' }, None(), key, options));
      assert.deepEqual([await entersAs(key), await entersAs(child)], ['disabled', 'disabled']);
      assert.deepEqual(await audit(), [
        ['REQUEST', 'LEAK', 'CI', '127.0.0.1', 'POST /revoke'],
        ['REQUEST', 'DISABLE', 'CI', undefined, undefined],
      ]);
      assert.ok(!JSON.stringify(lines).includes(key.slice(17)));
      assert.ok(JSON.stringify(lines).includes('secret revoked'));
      assert.deepEqual([(await revoke(key)).status, (await audit()).length], [200, 2]);
    });

    it('ends alone where a newer one has taken its place', async () => {
      const { key: old, apiKey } = await create('CI');
      const { key: fresh } = await test.keys.rotate(apiKey.id, {}, OPERATOR);
      assert.deepEqual((await revoke(old)).body, {});
      assert.deepEqual([await entersAs(old), await entersAs(fresh)], ['rotated', 'accepted']);
      assert.deepEqual((await audit()).at(-1)!.slice(0, 3), ['REQUEST', 'ROTATE_FINISH', 'CI']);
    });

    it('is answered alike whatever it is, until one address has sent too many that are no keys', async () => {
      const { key } = await create('CI');
      const typo = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
      for (const token of [typo, 'anything', `svc_${'0'.repeat(12)}_x`]) {
        const { status, body } = await revoke(token);
        assert.deepEqual([status, body], [200, {}]);
      }
      const limited = await revoke(typo);
      assert.equal(limited.status, 429);
      assert.match(limited.headers.get('retry-after')!, /^\d+$/);
      assert.equal(await entersAs(key), 'accepted');
      assert.equal((await revoke(key)).status, 200);
      assert.equal(await entersAs(key), 'disabled');
    });

    it('is taken from a form that has it once, and from nothing else', async () => {
      const { key } = await create('CI');
      const headers = { 'content-type': FORM };
      for (const [status, path, init] of [
        [405, '/revoke', { method: 'GET' }],
        [415, '/revoke', { body: JSON.stringify({ token: key }) }],
        [400, '/revoke', { headers, body: '' }],
        [400, '/revoke', { headers, body: `token=${key}&token=${key}` }],
        [400, `/revoke?token=${key}`, { headers, body: '' }],
      ] as const)
        assert.equal((await post(path, init)).status, status, path);
      assert.equal(await entersAs(key), 'accepted');
    });
  });

  describe('by POST /alerts/github', () => {
    const alert = (tokens: readonly unknown[], { id = 'current', by = github.key } = {}) => {
      const body = JSON.stringify(tokens);
      const signature = sign('sha256', Buffer.from(body), by).toString('base64');
      const headers = { 'Github-Public-Key-Identifier': id, 'Github-Public-Key-Signature': signature };
      return post('/alerts/github', { body, headers });
    };
    const found = (token: string) => ({ token, type: 'svc_api_key', url: 'https://github.com/a/b', source: 'content' });

    it('is revoked, and labelled as GitHub expects', async () => {
      const { key } = await create('CI');
      const { status, body } = await alert([found(key), found('svc_none')]);
      assert.equal(status, 200);
      assert.deepEqual(
        (body as object[]).map((each) => Object.entries(each).slice(1)),
        ['true_positive', 'false_positive'].map((label) => [
          ['token_type', 'svc_api_key'],
          ['label', label],
        ]),
      );
      const digest = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(key))).toString('base64');
      assert.equal((body as { token_hash: string }[])[0]!.token_hash, digest);
      assert.equal(await entersAs(key), 'disabled');
      assert.equal((await audit())[0]![4], 'GitHub: https://github.com/a/b');
    });

    it('changes nothing without a signature by one of the keys of GitHub', async () => {
      const { key } = await create('CI');
      const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
      assert.equal((await alert([found(key)], { by: other })).status, 403);
      assert.equal((await alert([found(key)], { id: 'unknown' })).status, 403);
      assert.equal((await alert([found(key)], { id: 'p384', by: github.otherCurve })).status, 403);
      assert.equal((await post('/alerts/github', { body: '[]' })).status, 429);
      assert.equal(await entersAs(key), 'accepted');
      assert.equal(github.requests, 1, 'the keys are kept');
    });

    it('is refused where the keys cannot be fetched, and taken once they can', async () => {
      const { key } = await create('CI');
      github.isDown = true;
      assert.equal((await alert([found(key)])).status, 503);
      github.isDown = false;
      assert.equal((await alert([found(key)])).status, 200);
    });

    it('is taken from a list of tokens alone', async () => {
      for (const tokens of [{ token: 'x' }, [{}], [1]])
        assert.equal((await alert(tokens as unknown[])).status, 400, JSON.stringify(tokens));
    });

    it('is not there unless it is configured', async () => {
      await server.stop(0);
      await start();
      assert.equal((await alert([])).status, 404);
      assert.equal(github.requests, 0);
    });
  });
});

/** As much of GitHub as has public keys, on loopback. */
class FakeGithub {
  readonly key: KeyObject;
  /** One that is listed, and not on P-256. */
  readonly otherCurve: KeyObject;
  isDown = false;
  requests = 0;
  readonly #server: Server;

  private constructor() {
    const [own, other] = ['P-256', 'P-384'].map((namedCurve) => generateKeyPairSync('ec', { namedCurve }));
    [this.key, this.otherCurve] = [own!.privateKey, other!.privateKey];
    const listed = [own, other].map((pair, index) => ({
      key_identifier: ['current', 'p384'][index],
      key: pair!.publicKey.export({ type: 'spki', format: 'pem' }),
      is_current: index === 0,
    }));
    this.#server = createServer((_, response) => {
      this.requests += 1;
      response.writeHead(this.isDown ? 500 : 200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ public_keys: listed }));
    });
  }

  static async start(): Promise<FakeGithub> {
    const github = new FakeGithub();
    github.#server.listen(0, '127.0.0.1');
    await once(github.#server, 'listening');
    return github;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/meta/public_keys/secret_scanning`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
