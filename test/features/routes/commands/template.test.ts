import assert from 'node:assert/strict';
import { testCli } from '../../../support/cli.ts';
import { configFile } from '../../../support/config-file.ts';

const template = (...args: string[]) => testCli().run(['routes', 'template', ...args]);

describe('routes template', () => {
  it('prints a valid configuration for the given place', async () => {
    const { stdout, stderr, code } = await template(
      'sonarr',
      '--upstream',
      'http://10.0.0.7:80',
      '--service-key',
      '/etc/k',
    );
    assert.deepEqual([stderr, code], ['', 0]);
    assert.match(
      stdout,
      /^ {2}sonarr: \{ url: "http:\/\/10\.0\.0\.7:80", send: \{ X-Api-Key: \{ file: "\/etc\/k" \} \} \}$/m,
    );
    assert.match(
      stdout,
      /^ {2}- GET https:\/\/sonarr\.example\.org\/api\/v3\/series with SONARR:READ_ANY is allowed$/m,
    );
    const file = configFile(stdout);
    const checked = await testCli().run(['routes', 'check'], { env: { SVC_API_CONFIG: file } });
    assert.match(checked.stdout, /: 17 routes; 18 expectations hold\n/);
    assert.equal(checked.code, 0);
    const json = await template('sonarr', '--upstream', 'http://10.0.0.7:80', '--service-key', '/etc/k', '--json');
    assert.deepEqual(JSON.parse(json.stdout), { service: 'sonarr', yaml: stdout });
  });

  it('is for the host that is given', async () => {
    const { stdout } = await template('immich', '--domain', 'Pictures.example.org');
    assert.match(stdout, /\{ host: pictures\.example\.org, path: \/\*\*, resource: IMMICH_ADMIN, to: immich \}/);
    assert.doesNotMatch(stdout, /immich\.example/);
  });

  it('refuses unknown names, and lists the known ones', async () => {
    for (const [args, message] of [
      [['sonar'], 'There is no template for "sonar". Did you mean sonarr? The services are docker-registry, gitea,'],
      [['svc'], 'There is no template for "svc". The services are docker-registry,'],
      [['sonarr', '--domain', '*.example.org'], '--domain is "*.example.org". Name one host, without "*".'],
      [['sonarr', '--domain', 'a b'], '"a b" is not a host for a route'],
      [['sonarr', '--upstream', 'http://a/b'], '"http://a/b" must not have a path'],
    ] as const) {
      const { stderr, code } = await template(...args);
      assert.deepEqual([code, stderr.replaceAll(/\n +/g, ' ').includes(message)], [2, true], stderr);
    }
  });
});
