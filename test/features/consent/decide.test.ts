import assert from 'node:assert/strict';
import type { NewConsentRequest } from '../../../src/features/consent/ask.ts';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { configFile } from '../../support/config-file.ts';
import { APP } from './support/consent.ts';
import { describeOnEachAndRemotely, isRemote, itOnStores } from '../../support/dialects.ts';
import { remoteStore } from '../../support/remote.ts';
import { Consent } from '../../../src/features/consent/consent.ts';

describeOnEachAndRemotely('apikey requests', () => {
  let cli: TestCli;
  beforeEach(async () => {
    cli = testCli();
    await cli.given('Anna', { roles: ['ADMIN'] });
  });
  const apikey = (...args: string[]) => cli.run(['apikey', ...args]);
  const json = async (...args: string[]) => {
    const { stdout, code } = await apikey(...args, '--json');
    return { code, body: JSON.parse(stdout) as Record<string, unknown> };
  };

  /** Requests a key for an application, as the server does, and fetches the key. */
  async function ask(wanted: Partial<NewConsentRequest> = {}) {
    const grants = { roles: ['VIEWER' as const], permissions: ['DOCKER:UPDATE_ANY' as const] };
    const asked = await withKeys({ database: cli.database }, (keys) =>
      keys.feature(Consent).ask({ client: APP, ...grants, address: '192.0.2.7', ...wanted }),
    );
    return { ...asked, deviceCode: asked.deviceCode! };
  }
  const redeem = (deviceCode: string) =>
    withKeys({ database: cli.database }, (keys) => keys.feature(Consent).redeem({ deviceCode, clientId: APP.id }));

  it('list who requests what, without the codes', async () => {
    assert.deepEqual(await apikey('requests', 'list'), {
      stdout: '',
      stderr: 'No requests to approve.\n',
      code: 0,
      signal: null,
    });
    const { request, handle } = await ask({ keyExpiresIn: '30d' });
    const { stdout } = await apikey('requests', 'list');
    const ends = new Date(request.expiresAt).toISOString();
    const cells = [request.id, 'Grafana sync (grafana-sync)', 'PENDING', 'role:VIEWER, DOCKER:UPDATE_ANY', '192.0.2.7'];
    assert.equal(stdout, `${[...cells, ends].join('\t')}\n`);
    const { body } = await json('requests', 'list');
    assert.deepEqual(body, {
      requests: [
        {
          id: request.id,
          client: { id: 'grafana-sync', name: 'Grafana sync' },
          flow: 'DEVICE',
          status: 'PENDING',
          roles: ['VIEWER'],
          permissions: ['DOCKER:UPDATE_ANY'],
          keyExpiresIn: '30d',
          address: '192.0.2.7',
          createdAt: new Date(request.createdAt).toISOString(),
          expiresAt: ends,
          apiKey: null,
        },
      ],
    });
    assert.ok(!(stdout + JSON.stringify(body)).includes(handle));
  });

  it('approve all that was requested, and the application gets a child of the approving key', async () => {
    const { handle, deviceCode } = await ask({ keyExpiresIn: '12h' });
    const { stdout, code } = await apikey('requests', 'approve', handle.toLowerCase().replace('-', ' '), '--yes');
    assert.match(stdout, /^Grafana sync gets the API key "Grafana sync \d{8} [B-Z]{6}"\n$/);
    assert.equal(code, 0);
    const redeemed = await redeem(deviceCode);
    assert.ok('key' in redeemed);
    const { roles, permissions, createdBy, expiresAt, createdAt, description } = redeemed.apiKey;
    const creator = isRemote() ? (await remoteStore(cli.database)).id : null;
    assert.deepEqual([roles, permissions, createdBy], [['VIEWER'], ['DOCKER:UPDATE_ANY'], creator]);
    assert.ok(Math.abs(expiresAt! - createdAt - 12 * 3_600_000) < 60_000);
    assert.equal(description, 'Requested by the application grafana-sync from 192.0.2.7');
    assert.equal((await apikey('log', '--verify')).code, 0);
  });

  itOnStores('are logged with the deciding user', async () => {
    const { handle, deviceCode } = await ask();
    await apikey('requests', 'approve', handle, '--yes');
    await redeem(deviceCode);
    const { stdout: log } = await apikey('log', '--limit', '3');
    assert.match(log, /cli \S+\tCONSENT_APPROVE[^]*cli \S+\tCREATE\tGrafana sync[^]*CONSENT_EXCHANGE/);
  });

  it('agree to the same twice as to it once, and to nothing else the second time', async () => {
    const { handle, deviceCode } = await ask();
    const week = ['requests', 'approve', handle, '--roles', 'VIEWER', '--expires-in', '7d', '--yes'];
    const first = await json(...week);
    assert.deepEqual([first.code, await json(...week)], [0, first]);
    const another = await json('requests', 'approve', handle, '--roles', 'VIEWER', '--expires-in', '8d', '--yes');
    assert.deepEqual([another.code, another.body['code']], [1, 'REQUEST_DECIDED']);
    const { stdout } = await apikey('log', '--action', 'CONSENT_APPROVE');
    assert.equal(stdout.split('\n').length, 2, 'one entry');
    assert.ok('key' in (await redeem(deviceCode)));
    assert.equal((await json(...week)).body['code'], 'REQUEST_DECIDED');
  });

  it('agree to less, and never to more', async () => {
    const { handle, deviceCode } = await ask();
    const more = await json('requests', 'approve', handle, '--roles', 'ADMIN', '--yes');
    assert.deepEqual([more.code, more.body['code']], [2, 'INPUT_INVALID']);
    const none = await json('requests', 'approve', handle, '--permissions', 'DOKER:READ_ANY', '--yes');
    assert.deepEqual([none.code, none.body['code']], [2, 'PERMISSION_INVALID']);
    const { body } = await json(
      'requests',
      'approve',
      handle,
      '--permissions',
      'DOCKER:READ_OWN',
      '--expires-in',
      '7d',
      '--yes',
    );
    const { apiKey } = body['request'] as { apiKey: { roles: string[]; permissions: string[]; expiresAt: string } };
    assert.deepEqual([apiKey.roles, apiKey.permissions], [[], ['DOCKER:READ_OWN']]);
    const redeemed = await redeem(deviceCode);
    assert.ok('key' in redeemed);
    assert.equal(new Date(redeemed.apiKey.expiresAt!).toISOString(), apiKey.expiresAt);
  });

  it('refuse by the code or the id, also after an approval', async () => {
    const first = await ask();
    const second = await ask();
    await apikey('requests', 'approve', first.handle, '--yes');
    const { stdout, code } = await apikey('requests', 'deny', first.handle, '--yes');
    assert.deepEqual([stdout, code], ['Grafana sync gets no API key\n', 0]);
    assert.equal((await json('requests', 'deny', second.request.id, '--yes')).code, 0);
    for (const { deviceCode } of [first, second]) {
      const redeemed = await redeem(deviceCode);
      assert.ok('refused' in redeemed && redeemed.refused === 'access_denied');
    }
    assert.equal((await json('requests', 'approve', first.handle, '--yes')).body['code'], 'REQUEST_DECIDED');
    assert.equal((await json('requests', 'deny', first.handle, '--yes')).code, 0, 'it stays refused');
  });

  it('say what is wrong with a code, and decide nothing without a terminal', async () => {
    const { handle } = await ask();
    for (const [args, code, exit] of [
      [['requests', 'approve', 'WDJB-MJHT', '--yes'], 'NOT_FOUND', 1],
      [['requests', 'approve', 'nonsense', '--yes'], 'NOT_FOUND', 1],
      [['requests', 'deny', 'nonsense', '--yes'], 'NOT_FOUND', 1],
      [['requests', 'approve', handle], 'USAGE', 2],
      [['requests', 'deny', handle], 'USAGE', 2],
    ] as const) {
      const { body, code: exited } = await json(...args);
      assert.deepEqual([body['code'], exited], [code, exit], args.join(' '));
    }
    assert.equal(((await json('requests', 'list')).body['requests'] as object[]).length, 1);
  });

  itOnStores(
    'agree to nothing that svc-api.yaml does not let applications ask for, and refuse it all the same',
    async () => {
      const config = ['--config', configFile('consent: off\n')];
      const none = await apikey('requests', 'list', ...config);
      assert.equal(none.stderr, 'No requests to approve: "consent" in svc-api.yaml is off.\n');
      const { handle } = await ask();
      const { code, body } = await json('requests', 'approve', handle, '--yes', ...config);
      assert.deepEqual([code, body['code']], [1, 'CONSENT_OFF']);
      assert.equal(body['error'], 'Applications cannot request keys: "consent" in svc-api.yaml is off.');
      assert.equal((await apikey('requests', 'deny', handle, '--yes', ...config)).code, 0);
    },
  );
});
