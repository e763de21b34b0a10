import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Hono } from 'hono';
import { bearerAuth } from '../../src/http/bearer-auth.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { CredentialPlace } from '../../src/keys/secret/secret.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { cleanEnv } from '../support/process.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

const run = promisify(execFile);
const COMMIT = '1'.repeat(40);
/** The branches that a git server advertises. */
const ADVERTISED = `001e# service=git-upload-pack\n0000${packet(`${COMMIT} HEAD\0\n`)}0000`;

function packet(line: string): string {
  return (line.length + 4).toString(16).padStart(4, '0') + line;
}

describe('Basic authentication', () => {
  let test: TestKeys;
  let secret: string;
  let server: RunningServer;
  before(async () => {
    test = await openTestKeys();
    ({ key: secret } = await test.keys.create({ name: 'Git', roles: ['GUEST'] }, OPERATOR));
  });
  afterEach(() => server.stop(0));
  after(() => test.store.close());

  async function serve(credentials: CredentialPlace[]): Promise<void> {
    const app = new Hono().use(bearerAuth({ keys: test.keys, credentials }));
    app.get('/repository.git/info/refs', (c) =>
      c.body(ADVERTISED, 200, { 'Content-Type': 'application/x-git-upload-pack-advertisement' }),
    );
    server = await listen({ app, host: '127.0.0.1', port: 0 });
  }

  /** The output of git with this password. */
  async function git(password: string): Promise<string> {
    const folder = tempFolder();
    writeFileSync(join(folder, 'ask'), `#!/bin/sh\necho '${password}'\n`, { mode: 0o700 });
    const env = { GIT_ASKPASS: join(folder, 'ask'), GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
    const args = ['-c', 'http.proxy=', 'ls-remote', `${server.url}/repository.git`];
    return (await run('git', args, { cwd: folder, env: cleanEnv({ ...env, HOME: folder, no_proxy: '*' }) })).stdout;
  }

  for (const credentials of [['basic'], ['bearer', 'basic'], ['basic', { header: 'X-Api-Key' }]] as CredentialPlace[][])
    it(`is what git uses, which is offered it by ${JSON.stringify(credentials)}`, async function () {
      needsPrograms(this, 'git');
      await serve(credentials);
      assert.equal(await git(secret), `${COMMIT}\tHEAD\n`);
      await assert.rejects(git('wrong'), /Authentication failed/);
    });

  it('is what curl -u uses, at once or when it is asked for', async function () {
    needsPrograms(this, 'curl');
    await serve(['bearer', 'basic']);
    const curl = async (...args: string[]) =>
      (await run('curl', ['-s', '--noproxy', '*', ...args, `${server.url}/repository.git/info/refs`])).stdout;
    for (const how of [[], ['--anyauth'], ['--basic']]) assert.match(await curl(...how, '-u', `x:${secret}`), /HEAD/);
    assert.match(await curl('--oauth2-bearer', secret), /HEAD/);
    assert.match(await curl('--anyauth', '-u', 'x:wrong'), /"The API key is not valid\."/);
    assert.match(await curl('-u', `${secret}:`), /"Missing API key: /);
  });
});
