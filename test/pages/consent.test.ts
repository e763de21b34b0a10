import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type OpenKeys, openKeys } from '../../src/service/open-keys.ts';
import { agree, openPage } from '../features/consent/support/consent.ts';
import { blocksOf, pathWithCli, runBlock } from '../support/pages.ts';
import { cleanEnv, finished, ROOT, startCli } from '../support/process.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { needsPrograms, skipUnlessCI } from '../support/skip.ts';
import { tempFolder, tempStore } from '../support/temp.ts';
import { authenticate } from '../support/keys.ts';
import { Consent } from '../../src/features/consent/consent.ts';

/** Debian's own Python, which sees Debian's packages. */
const PYTHON = '/usr/bin/python3';

describe('an application that asks for a key', () => {
  let database: string;
  let keys: OpenKeys;
  let server: TestServer;
  beforeEach(async () => {
    database = tempStore();
    keys = await openKeys({ database });
    server = await startServer(keys);
  });
  afterEach(async () => {
    await server.stop();
    await keys.close();
  });
  const accepts = async (key: string) => 'principal' in (await authenticate(keys, key));

  it('gets one by the commands of docs/consent.md', async function () {
    needsPrograms(this, 'curl');
    const folder = tempFolder();
    const blocks = blocksOf('docs/consent.md');
    const [ask, decide, fetchKey] = blocks as [string, string, string];
    const exchangeKey = blocks.find((block) => block.includes('token-exchange'))!;
    const endKey = blocks.find((block) => block.includes('/oauth/revoke'))!;
    const env = { PATH: pathWithCli(folder), SVC_API_DATABASE: database, no_proxy: '*' };
    const run = async (block: string, more: NodeJS.ProcessEnv = {}) => {
      const done = await runBlock(block.replace('http://127.0.0.1:4000', server.url), folder, { ...env, ...more });
      assert.equal(done.code, 0, done.stderr);
      return done.stdout;
    };
    await run(ask);
    const asked = JSON.parse(readFileSync(join(folder, 'asked.json'), 'utf8')) as Record<string, string>;
    assert.equal(asked['verification_uri'], `${server.url}/device`);
    const decided = await run(decide.replace('WDJB-MJHT', `${asked['user_code']} --yes`));
    assert.match(
      decided,
      /^\S+\tsvc api \(svc-api\)\tPENDING\trole:GUEST, SERVICES:READ_ANY\t127\.0\.0\.1\t.*\nsvc api gets/,
    );
    const answer = JSON.parse(await run(fetchKey, { DEVICE_CODE: asked['device_code'] })) as Record<string, string>;
    assert.equal(answer['scope'], 'role:GUEST SERVICES:READ_ANY');
    assert.equal(await accepts(answer['access_token']!), true);
    assert.equal(await run(endKey, { ACCESS_TOKEN: answer['access_token'] }), '{}');
    assert.equal(await accepts(answer['access_token']!), false);

    const child = JSON.parse(await run(exchangeKey)) as Record<string, string>;
    assert.deepEqual([child['scope'], child['expires_in']], ['SERVICES:READ_ANY', 600]);
    assert.equal(await accepts(child['access_token']!), true);
  });

  it('gets one by svc-api login, which other commands then send', async () => {
    const env = cleanEnv({ XDG_DATA_HOME: tempFolder(), no_proxy: '*' });
    const start = (...args: string[]) => startCli([...args, '--server', server.url], { env });
    const login = start('login', '--expires-in', '1h');
    const [line] = (await once(createInterface(login.stderr!), 'line')) as [string];
    const [, userCode] = / and type (\S+)$/.exec(line)!;
    await keys.feature(Consent).approve(await keys.feature(Consent).show({ userCode: userCode! }), {}, OPERATOR);
    const { stdout } = await finished(login);
    assert.match(stdout, /^Logged in to http:\S+ until \S+: API_KEY:CREATE_ANY, .*ME:READ_OWN\n$/);
    const listed = await finished(start('apikey', 'list'));
    assert.match(listed.stdout, /^svc api \d{8} [B-Z]{6}\tACTIVE\t/);
    const created = await finished(start('apikey', 'create', 'Child', '--permissions', 'LOGS:READ_ANY'));
    assert.equal(created.code, 0, created.stderr);
    assert.equal((await finished(start('logout'))).code, 2, 'it has created a key');
    assert.equal((await finished(start('logout', '--yes'))).code, 0);
    assert.deepEqual((await keys.list({}, OPERATOR)).keys, []);
    assert.match((await finished(start('apikey', 'list'))).stderr, /There is no key for/);
  });

  describe('in Python', () => {
    /** Starts the example. @returns its first output, and its end */
    function start(...args: string[]) {
      const script = join(ROOT, 'examples/python/get_key.py');
      const env = cleanEnv({ BROWSER: 'true', no_proxy: '*', PYTHONDONTWRITEBYTECODE: '1' });
      const child = spawn(PYTHON, [script, ...args, server.url, 'role:GUEST SERVICES:READ_ANY'], { env });
      return {
        said: once(createInterface(child.stderr), 'line').then(([line]) => String(line)),
        done: finished(child),
      };
    }
    beforeEach(async () => {
      await server.stop();
      server = await startServer(keys.withAdditions({ consent: 'both' }));
    });
    before(function () {
      if (spawnSync(PYTHON, ['-c', 'import authlib, requests']).status !== 0)
        skipUnlessCI(this, 'python3-authlib or python3-requests is not installed');
    });

    it('gets one by a code', async () => {
      const { said, done } = start();
      const [, page, userCode] = /^Open (\S+) and type (\S+)$/.exec(await said)!;
      assert.equal(page, `${server.url}/device`);
      const request = await keys.feature(Consent).show({ userCode: userCode! });
      await keys.feature(Consent).approve(request, {}, OPERATOR);
      const { stdout, stderr, code } = await done;
      assert.equal(code, 0, stderr);
      assert.equal(await accepts(stdout.trim()), true);
    });

    it('gets one by a page', async () => {
      const { key: secret } = await keys.create({ name: 'Anna', roles: ['ADMIN'] }, OPERATOR);
      const { said, done } = start('--browser');
      const [, page] = /^Open (\S+)$/.exec(await said)!;
      const { headers } = await agree(server.url, (await openPage(page!)).fields, secret);
      await fetch(headers.get('location')!);
      const { stdout, stderr, code } = await done;
      assert.equal(code, 0, stderr);
      assert.equal(await accepts(stdout.trim()), true);
    });
  });
});
