import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { AskedConsent } from '../../../src/features/consent/ask.ts';
import { keepKey, keptKey } from '../../../src/features/login/cli/credentials.ts';
import { openKeys } from '../../../src/service/open-keys.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { APP, pollDevice, postJson, startConsentService } from '../../features/consent/support/consent.ts';
import { tempFolder } from '../../support/temp.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../../support/pty.ts';
import { authenticate } from '../../support/keys.ts';
import { Consent } from '../../../src/features/consent/consent.ts';

describe('requests approve on a terminal', () => {
  let cli: TestCli;
  let asked: AskedConsent;
  let session: TerminalSession;
  beforeEach(async () => {
    cli = testCli();
    const keys = await openKeys({ database: cli.database });
    const grants = { roles: ['VIEWER' as const], permissions: ['DOCKER:UPDATE_ANY' as const] };
    asked = await keys.feature(Consent).ask({ client: APP, ...grants, keyExpiresIn: '30d', address: '192.0.2.7' });
    await keys.close();
    session = cliOnTerminal(['requests', 'approve', asked.handle], { SVC_API_DATABASE: cli.database });
  });
  afterEach(() => session.close());
  const statuses = async () => {
    const { stdout } = await cli.run(['requests', 'list', '--json']);
    return (JSON.parse(stdout) as { requests: { status: string }[] }).requests.map(({ status }) => status);
  };

  it('shows the application and its request, and asks; Enter means No, and nothing is decided', async () => {
    for (const shown of [
      'application   Grafana sync (grafana-sync)',
      'from          192.0.2.7',
      'for           role:VIEWER, DOCKER:UPDATE_ANY',
      'key expires   after 30d',
    ])
      await session.see(shown);
    await session.answer('Give Grafana sync an API key?', KEYS.enter);
    assert.deepEqual([await session.end(), await statuses()], [130, ['PENDING']]);
  });

  it('agrees after a Yes', async () => {
    await session.answer('Give Grafana sync an API key?', `y${KEYS.enter}`);
    await session.see('Grafana sync gets the API key "Grafana sync ');
    assert.deepEqual([await session.end(), await statuses()], [0, ['APPROVED']]);
  });
});

describe('logout on a terminal', () => {
  it('asks where the key has created others; Enter means No, and nothing ends', async () => {
    const test = await startConsentService();
    const form = { client_id: 'svc-api', scope: 'role:GUEST API_KEY:CREATE_OWN' };
    const { body } = await postJson(`${test.url}/oauth/device_authorization`, form);
    const consent = test.keys.feature(Consent);
    await consent.approve(await consent.show({ userCode: body['user_code'] as string }), {}, OPERATOR);
    const given = await pollDevice(test.url, body['device_code'] as string, 'svc-api');
    const key = given.body['access_token'] as string;
    const authenticated = await authenticate(test.keys, key);
    assert.ok('principal' in authenticated);
    await test.keys.create({ name: 'Child', roles: ['GUEST'] }, authenticated.principal);
    const env = { XDG_DATA_HOME: tempFolder() };
    keepKey(test.url, key, env);
    for (const [answer, code, kept] of [
      ['', 130, key],
      ['y', 0, undefined],
    ] as const) {
      const session = cliOnTerminal(['logout', '--server', test.url], { ...env, no_proxy: '*' });
      await session.answer(
        'This key has created 1 API key, which would be deleted with it. Log out?',
        `${answer}${KEYS.enter}`,
      );
      assert.deepEqual([await session.end(), keptKey(test.url, env)], [code, kept]);
      session.close();
    }
    await test.stop();
  });
});
