import assert from 'node:assert/strict';
import { describeOnEachAndRemotely, itOnStores } from '../../../support/dialects.ts';
import { type TestCli, testCli } from '../../../support/cli.ts';
import { configFile } from '../../../support/config-file.ts';
import { changeDirectly, unlockAuditLog } from '../../../support/direct.ts';
import { sendRaw } from '../../../support/raw-http.ts';
import { startServe } from '../../../support/serve.ts';
import { migratedStore } from '../../../support/temp.ts';

const CONFIG = `resources: [GRAFANA]
routes:
  - { host: a.example.org, path: /api/**, allow: GRAFANA:READ_ANY, observe: true }
  - { host: b.example.org, path: /**, allow: GRAFANA:READ_ANY, observe: true }
  - { host: c.example.org, path: /**, allow: GRAFANA:READ_ANY }
`;

describeOnEachAndRemotely('routes check --observed', () => {
  let cli: TestCli;
  let env: NodeJS.ProcessEnv;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
    env = { SVC_API_CONFIG: configFile(CONFIG) };
  });

  it('lists who would be refused, and what they lack', async () => {
    const { key } = await cli.given('CI deploy', { roles: ['GUEST'] });
    const server = await startServe(cli.database, ['--port', '0'], env);
    for (const line of [`Authorization: Bearer ${key}`, 'X: none', 'X: none']) {
      const head = [
        'GET /auth/caddy HTTP/1.1',
        'Host: a.example.org',
        'X-Forwarded-For: 203.0.113.7',
        'X-Forwarded-Host: a.example.org',
        'X-Forwarded-Method: GET',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Uri: /api/users',
        line,
        '\r\n',
      ];
      assert.equal((await sendRaw(server.url, Buffer.from(head.join('\r\n')))).status, 200);
    }
    await server.stop();
    const { stdout, stderr, code } = await cli.run(['routes', 'check', '--observed'], { env });
    assert.equal(code, 0, stderr);
    const file = env['SVC_API_CONFIG']!;
    const lines = stdout.split('\n').map((line) => line.replaceAll(/\S+Z \([^)]*\)/g, 'T'));
    assert.deepEqual(lines.slice(0, 1), [
      `${file}:3: route 1 (a.example.org/api/**) observes since T, and would refuse:`,
    ]);
    assert.deepEqual(
      new Set(lines.slice(1, 3).map((line) => line.replace(/, the last .*/, ''))),
      new Set([
        '  1 request of "CI deploy", which lacks GRAFANA:READ_ANY',
        '  2 requests without a valid key, or otherwise not allowed',
      ]),
    );
    assert.deepEqual(lines.slice(3), [`${file}:4: route 2 (b.example.org/**) observes, and no request has come`, '']);
  });

  itOnStores('doctor names a route that does so for more than 30 days', async () => {
    const server = await startServe(cli.database, ['--port', '0'], env);
    await sendRaw(
      server.url,
      Buffer.from(
        'GET /auth/caddy HTTP/1.1\r\nHost: b.example.org\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Host: b.example.org\r\n' +
          'X-Forwarded-Method: GET\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Uri: /\r\n\r\n',
      ),
    );
    await server.stop();
    const found = async () => {
      const { stdout } = await cli.run(['doctor', '--json'], { env });
      const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; message: string }[] };
      return checks.filter(({ check, status }) => check === 'CONFIG' && status !== 'ok').map(({ message }) => message);
    };
    assert.deepEqual(await found(), []);
    await unlockAuditLog(cli.database);
    await changeDirectly(cli.database, `update audit_log set at = at - ${31 * 86_400_000} where action = 'OBSERVE'`);
    assert.deepEqual(await found(), [
      'The route b.example.org/** has observed for more than 30 days: it allows requests that it would refuse.',
    ]);
  });
});
