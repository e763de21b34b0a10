import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { forgetKey, keepKey, keptKey } from '../../../src/features/login/cli/credentials.ts';
import { serverTarget } from '../../../src/cli/with-keys.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { onPlatform } from '../../support/platform.ts';
import { tempFolder } from '../../support/temp.ts';

const SERVER = 'https://keys.example.org';

describe('kept keys of servers', () => {
  let env: NodeJS.ProcessEnv;
  let key: string;
  beforeEach(() => {
    env = { XDG_DATA_HOME: join(tempFolder(), 'data') };
    key = createSecret(randomBytes).text;
  });
  const refusal = (message: RegExp) => ({ code: 'CREDENTIALS_INVALID', message });

  it('are readable only by their owner, whatever the umask, and leave no other files', () => {
    const umask = process.umask(0);
    try {
      const path = keepKey(SERVER, key, env);
      assert.equal(path.startsWith(join(env['XDG_DATA_HOME']!, 'svc-api', 'credentials', 'keys.example.org-')), true);
      assert.deepEqual([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777], [0o600, 0o700]);
      assert.deepEqual(readdirSync(dirname(path)).length, 1);
    } finally {
      process.umask(umask);
    }
  });

  it('are those of one server, replaced by a newer one, and removed once', () => {
    assert.equal(keptKey(SERVER, env), undefined);
    keepKey(SERVER, createSecret(randomBytes).text, env);
    keepKey(SERVER, key, env);
    assert.equal(keptKey(SERVER, env), key);
    for (const other of ['https://keys.example.org:8443', 'https://keys.example.org/a', 'http://keys.example.org'])
      assert.equal(keptKey(other, env), undefined, other);
    assert.deepEqual([forgetKey(SERVER, env), forgetKey(SERVER, env)], [true, false]);
    assert.equal(keptKey(SERVER, env), undefined);
  });

  it('come after SVC_API_KEY', async () => {
    keepKey(SERVER, key, env);
    const sent = async (given: string) =>
      (await serverTarget({ server: SERVER }, { ...env, SVC_API_KEY: given }, ''))?.key;
    assert.equal(await sent(''), key);
    assert.equal(await sent(' other\n'), 'other');
    await assert.rejects(sent('a\nb'), refusal(/^SVC_API_KEY is not an API key/));
  });

  it('are read on Windows, which shows each file with all rights', async () => {
    chmodSync(keepKey(SERVER, key, env), 0o666);
    await onPlatform('win32', () => assert.equal(keptKey(SERVER, env), key));
  });

  it('are refused where others may have them, or where they were changed, and are never shown', () => {
    const path = keepKey(SERVER, key, env);
    chmodSync(path, 0o640);
    assert.throws(() => keptKey(SERVER, env), refusal(/can be read by other users/));
    chmodSync(path, 0o600);
    const text = readFileSync(path, 'utf8');
    const wrong = [
      text.replace(SERVER, 'https://thief.example'),
      text.replace(/_\w{9}/, '_000000000'),
      '',
      '[',
      'null',
    ];
    for (const content of wrong) {
      writeFileSync(path, content);
      assert.throws(
        () => keptKey(SERVER, env),
        (error: Error) => /does not hold a key/.test(error.message) && !error.message.includes(key.slice(17)),
        content,
      );
    }
    keepKey(SERVER, key, env);
    const elsewhere = join(tempFolder(), 'link');
    writeFileSync(elsewhere, text, { mode: 0o600 });
    forgetKey(SERVER, env);
    symlinkSync(elsewhere, path);
    assert.throws(() => keptKey(SERVER, env), refusal(/cannot be used \(ELOOP\)/));
  });
});
