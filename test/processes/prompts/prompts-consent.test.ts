import assert from 'node:assert/strict';
import type { AskedConsent } from '../../../src/keys/consent/ask.ts';
import { openKeys } from '../../../src/open-keys.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { APP } from '../../support/consent.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../../support/pty.ts';

describe('apikey approve on a terminal', () => {
  let cli: TestCli;
  let asked: AskedConsent;
  let session: TerminalSession;
  beforeEach(async () => {
    cli = testCli();
    const keys = await openKeys({ database: cli.database });
    const grants = { roles: ['VIEWER' as const], permissions: ['DOCKER:UPDATE_ANY' as const] };
    asked = await keys.consent.ask({ client: APP, ...grants, keyExpiresIn: '30d', address: '192.0.2.7' }, 'test');
    await keys.close();
    session = cliOnTerminal(['apikey', 'approve', asked.handle], { SVC_API_DATABASE: cli.database });
  });
  afterEach(() => session.close());
  const statuses = async () => {
    const { stdout } = await cli.run(['apikey', 'requests', '--json']);
    return (JSON.parse(stdout) as { requests: { status: string }[] }).requests.map(({ status }) => status);
  };

  it('shows who asks for what, and asks; Enter means No, and nothing is decided', async () => {
    for (const shown of [
      'application   Grafana sync (grafana-sync)',
      'from          192.0.2.7',
      'for           role:VIEWER, DOCKER:UPDATE_ANY',
      'key ends      after 30d',
    ])
      await session.see(shown);
    await session.answer('Let Grafana sync have an API key?', KEYS.enter);
    assert.deepEqual([await session.end(), await statuses()], [130, ['PENDING']]);
  });

  it('agrees after a Yes', async () => {
    await session.answer('Let Grafana sync have an API key?', `y${KEYS.enter}`);
    await session.see('Grafana sync gets the API key "Grafana sync ');
    assert.deepEqual([await session.end(), await statuses()], [0, ['APPROVED']]);
  });
});
