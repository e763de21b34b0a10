import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { keepKey, keptKey } from '../../../src/features/login/cli/credentials.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { pollDevice, postJson, startConsentService } from '../consent/support/consent.ts';
import { freePort } from '../../support/port.ts';
import type { TestService } from '../../support/server.ts';
import { tempFolder } from '../../support/temp.ts';
import { authenticate } from '../../support/keys.ts';
import { Consent } from '../../../src/features/consent/consent.ts';

describe('logging out', () => {
  let test: TestService;
  let env: NodeJS.ProcessEnv;
  let key: string;
  let file: string;
  beforeEach(async () => {
    test = await startConsentService();
    env = { XDG_DATA_HOME: tempFolder() };
    const form = { client_id: 'svc-api', scope: 'role:GUEST API_KEY:CREATE_OWN' };
    const { body } = await postJson(`${test.url}/oauth/device_authorization`, form);
    const consent = test.keys.feature(Consent);
    await consent.approve(await consent.show({ userCode: body['user_code'] as string }), {}, OPERATOR);
    const given = await pollDevice(test.url, body['device_code'] as string, 'svc-api');
    key = given.body['access_token'] as string;
    file = keepKey(test.url, key, env);
  });
  afterEach(() => test.stop());
  const accepts = async (secret: string) => 'principal' in (await authenticate(test.keys, secret));
  const logout = (...args: string[]) => runCliHere(['logout', '--server', test.url, ...args], { env });
  const isKept = () => keptKey(test.url, env) === key;

  it('ends the key on the server, and forgets it', async () => {
    const { stdout, stderr, code } = await logout();
    assert.deepEqual([stdout, stderr, code], [`Logged out of ${test.url}: the key was deleted\n`, '', 0]);
    assert.deepEqual([await accepts(key), keptKey(test.url, env)], [false, undefined]);
    assert.equal((await logout()).stdout, `There was no key for ${test.url}\n`);
  });

  it('takes the only server with a kept key if no address is given', async () => {
    keepKey('http://127.0.0.1:1', key, env);
    const { stderr, code } = await runCliHere(['logout'], { env });
    assert.match(stderr, /^Error: You are logged in to http:\S+ and http:\S+\. Pass the address of one of them\.\n/);
    assert.deepEqual([code, isKept()], [2, true]);
    await runCliHere(['logout', '--local', 'http://127.0.0.1:1'], { env });
    assert.equal((await runCliHere(['logout'], { env })).stdout, `Logged out of ${test.url}: the key was deleted\n`);
    assert.deepEqual([await accepts(key), keptKey(test.url, env)], [false, undefined]);
    assert.match((await runCliHere(['logout'], { env })).stderr, /^Error: The server is missing\./);
  });

  it('forgets a key that had already ended, and reports its result in JSON', async () => {
    const expected = { server: test.url, forgotten: true, ended: true };
    const [given] = (await test.keys.list({}, OPERATOR)).keys;
    await test.keys.delete([given!.id], OPERATOR);
    assert.deepEqual(JSON.parse((await logout('--json')).stdout), expected);
    const none = { server: test.url, forgotten: false, ended: false };
    assert.deepEqual(JSON.parse((await logout('--json')).stdout), none);
  });

  it('ends no keys that it has created without a Yes', async () => {
    const authenticated = await authenticate(test.keys, key);
    assert.ok('principal' in authenticated);
    const { key: secret } = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, authenticated.principal);
    const { stderr, code } = await logout();
    assert.match(
      stderr,
      /^Error: This key has created 1 API key, which would be deleted with it\. Pass --yes to log out anyway, /,
    );
    assert.deepEqual([code, isKept(), await accepts(key), await accepts(secret)], [2, true, true, true]);
    assert.equal((await logout('--yes')).code, 0);
    assert.deepEqual([isKept(), await accepts(key), await accepts(secret)], [false, false, false]);
  });

  it('only forgets with --local, also a file that cannot be read, and sends nothing', async () => {
    chmodSync(file, 0o644);
    assert.match((await logout()).stderr, /Code: CREDENTIALS_INVALID/);
    const { stdout, code } = await logout('--local');
    const text = `The key for ${test.url} was removed from this machine, and stays valid on the server until it expires\n`;
    assert.deepEqual([stdout, code, await accepts(key), isKept()], [text, 0, true, false]);
    const elsewhere = await runCliHere(['logout', '--local', '--server', 'http://keys.example.org'], { env });
    assert.equal(elsewhere.code, 0, 'it is no matter whether the way there is encrypted');
  });

  it('keeps the key where the server does not end it, and says what to do', async () => {
    const remedy = /The key is kept: try again, or pass --local to only remove it from this machine\.\nCode: /;
    const { key: made } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    keepKey(test.url, made, env);
    const foreign = await logout();
    assert.match(foreign.stderr, remedy);
    assert.match(foreign.stderr, /This key was not given to an application.*\nCode: FORBIDDEN/);
    assert.deepEqual([foreign.code, keptKey(test.url, env), await accepts(made)], [1, made, true]);

    const nobody = `http://127.0.0.1:${await freePort()}`;
    keepKey(nobody, key, env);
    const { stderr, code } = await runCliHere(['logout', '--server', nobody], { env });
    assert.match(stderr, remedy);
    assert.match(stderr, /Code: SERVER_UNREACHABLE/);
    assert.deepEqual([code, keptKey(nobody, env)], [1, key]);
  });

  it('takes no other answer for that of a server that has ended the key', async () => {
    const answers: [status: number, text: string, code: RegExp][] = [
      [200, '<html>', /SERVER_INCOMPATIBLE/],
      [200, '', /SERVER_INCOMPATIBLE/],
      [200, '{"ok":true}', /SERVER_INCOMPATIBLE/],
      [404, '{}', /SERVER_INCOMPATIBLE/],
      [302, '{}', /SERVER_INCOMPATIBLE/],
      [429, '{"error":"temporarily_unavailable","error_description":"\\u001b[2J"}', /SERVER_FAILED/],
    ];
    for (const [status, text, code] of answers) {
      const other = createServer((_, response) => response.writeHead(status, { location: '/x' }).end(text));
      await once(other.listen(0, '127.0.0.1'), 'listening');
      const server = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      keepKey(server, key, env);
      const { stderr } = await runCliHere(['logout', '--server', server], { env });
      assert.match(stderr, code, text);
      assert.ok(!stderr.includes('\u001b') && !stderr.includes(key));
      assert.equal(keptKey(server, env), key);
      other.close();
    }
  });

  it('sends no key over a network in the clear', async () => {
    keepKey('http://keys.example.org', key, env);
    const { stderr, code } = await runCliHere(['logout', '--server', 'http://keys.example.org'], { env });
    assert.match(stderr, /Code: SERVER_INSECURE/);
    assert.deepEqual([code, keptKey('http://keys.example.org', env)], [2, key]);
  });
});

describe('logging in', () => {
  it('asks for single roles or permissions, and for nothing else', async () => {
    for (const wrong of ['', 'GUEST VIEWER', 'VIEWER,,GUEST']) {
      const args = ['login', '--server', 'http://127.0.0.1:9', '--roles', wrong];
      const { stderr, code } = await runCliHere(args);
      assert.match(stderr, /^Error: ".*" is neither a role nor a permission\. Put commas between them\.\n/);
      assert.equal(code, 2);
    }
  });

  it('requests the given roles and permissions', async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      request.on('data', (chunk: Buffer) => asked.push(chunk.toString()));
      request.on('end', () => response.writeHead(400).end('{"error":"invalid_scope"}'));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await runCliHere(['login', '--server', url, '--roles', 'guest, VIEWER', '--permissions', 'DOCKER:READ_ANY']);
    server.close();
    assert.equal(new URLSearchParams(asked.join('')).get('scope'), 'role:guest role:VIEWER DOCKER:READ_ANY');
  });
});
