import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { keptKey } from '../../../src/features/login/cli/credentials.ts';
import { keepGivenKey } from '../../../src/features/login/cli/keep-given-key.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { pollDevice, postJson, startConsentService } from '../consent/support/consent.ts';
import { freePort } from '../../support/port.ts';
import type { TestService } from '../../support/server.ts';
import { tempFolder } from '../../support/temp.ts';
import { authenticate } from '../../support/keys.ts';
import { Consent } from '../../../src/features/consent/consent.ts';

describe('the key of a login', () => {
  let test: TestService;
  let env: NodeJS.ProcessEnv;
  let credentials: string;
  beforeEach(async () => {
    test = await startConsentService();
    env = { XDG_DATA_HOME: tempFolder() };
    credentials = join(env['XDG_DATA_HOME']!, 'svc-api/credentials');
  });
  afterEach(() => test.stop());
  const spoilPlace = () => {
    mkdirSync(dirname(credentials));
    writeFileSync(credentials, 'a file');
  };
  /** Creates a key as for a user who logs in. */
  async function given(): Promise<string> {
    const form = { client_id: 'svc-api', scope: 'role:GUEST' };
    const { body } = await postJson(`${test.url}/oauth/device_authorization`, form);
    const consent = test.keys.feature(Consent);
    await consent.approve(await consent.show({ userCode: body['user_code'] as string }), {}, OPERATOR);
    const answer = await pollDevice(test.url, body['device_code'] as string, 'svc-api');
    return answer.body['access_token'] as string;
  }

  it('is stored, and no other files are left', async () => {
    const secret = await given();
    assert.equal(dirname(await keepGivenKey(test.url, secret, env)), credentials);
    assert.deepEqual([keptKey(test.url, env), readdirSync(credentials).length], [secret, 1]);
    assert.ok('principal' in (await authenticate(test.keys, secret)));
  });

  it('asks for nothing where a key could not be kept', async () => {
    spoilPlace();
    let asked = 0;
    const server = createServer((_, response) => void ((asked += 1), response.end()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const { stderr, code } = await runCliHere(['login', '--server', url], { env });
      assert.match(stderr, /^Error: The file \S+ cannot be used \((ENOTDIR|EEXIST)\)\. Check it and its folder\.$/m);
      assert.match(stderr, /^Code: CREDENTIALS_INVALID$/m);
      assert.deepEqual([code, asked], [1, 0]);
    } finally {
      server.close();
    }
  });

  it('is revoked if it cannot be stored', async () => {
    const secret = await given();
    spoilPlace();
    await assert.rejects(keepGivenKey(test.url, secret, env), {
      code: 'CREDENTIALS_INVALID',
      message: /cannot be used \(.*\)\. Check it and its folder\. The new key was revoked again\.$/,
    });
    assert.equal('principal' in (await authenticate(test.keys, secret)), false);
  });

  it('names a key that it can neither keep nor end', async () => {
    const secret = await given();
    spoilPlace();
    await assert.rejects(keepGivenKey(`http://127.0.0.1:${await freePort()}`, secret, env), {
      message: new RegExp(
        `The new key, ${secret.slice(0, 17)}…, is valid, but its secret is lost: delete it on the server\\.$`,
      ),
    });
  });
});
