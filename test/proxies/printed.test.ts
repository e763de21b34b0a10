import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask } from '../support/proxies/client.ts';
import { type Configuration, CONFIGURATIONS, type Place, SITE } from '../support/proxies/configurations.ts';
import { describeEachProxy } from '../support/proxies/describe.ts';
import { valuesOf } from '../support/proxies/service.ts';
import { BIN } from '../support/process.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

/** The command with which each program checks a configuration. */
const CHECKS: Readonly<Record<Configuration['program'], (args: string[]) => string[]>> = {
  nginx: (args) => [...args, '-t'],
  caddy: ([, ...args]) => ['validate', ...args],
  haproxy: (args) => [...args, '-c'],
  apache2: (args) => [...args, '-t'],
};

const config = join(tempFolder(), 'svc-api.yaml');
writeFileSync(config, 'credentials: [bearer, basic, { header: X-Api-Key }]', { mode: 0o600 });

function print(proxy: string, upstream: string, decides: readonly string[] = ['--resource', 'WIKI']): string {
  const args = [BIN, 'proxy', proxy, ...decides, '--upstream', upstream, '--domain', SITE, '--config', config];
  const { stdout, status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout;
}

/** The examples, as the command prints them for another resource and upstream. */
const printedFor = (upstream: (place: Place) => string, decides?: readonly string[]): Configuration[] =>
  CONFIGURATIONS.filter(({ title }) => /^examples\/(?!guard)/.test(title)).map((configuration) => {
    const proxy = configuration.title.replace('examples/', '');
    return {
      ...configuration,
      title: `svc-api proxy ${proxy}`,
      resource: 'WIKI',
      requirement: decides === undefined ? configuration.requirement.replace('GRAFANA', 'WIKI') : '',
      write: (place, adapt) =>
        configuration.write(place, (_, { '127.0.0.1:3000': _address, ...others }) =>
          adapt(print(proxy, upstream(place), decides), others),
        ),
    };
  });

describeEachProxy(
  'a service for which a configuration was printed',
  {},
  (site) => {
    it('is reached only by keys, with their permissions', async () => {
      assert.equal((await ask(site().port, {})).status, 401);
      const reader = await site().reader();
      const { status, got } = await ask(site().port, { headers: [reader] });
      assert.equal(status, 200);
      assert.deepEqual(valuesOf(got!, 'x-auth-permission'), ['WIKI:READ_ANY']);
      assert.equal((await ask(site().port, { method: 'POST', headers: [reader], body: 'x' })).status, 403);
      const editor = await site().editor();
      assert.equal((await ask(site().port, { method: 'POST', headers: [editor], body: 'x' })).status, 200);
    });

    it('does not get the key, in whichever header it is', async () => {
      const [, credentials] = await site().reader();
      const { status, got } = await ask(site().port, { headers: [['X-Api-Key', credentials.replace('Bearer ', '')]] });
      assert.equal(status, 200);
      assert.deepEqual(valuesOf(got!, 'x-api-key'), []);
    });
  },
  printedFor(({ service }) => `http://localhost:${service}`),
);

describeEachProxy(
  'a service for which a configuration with routes was printed',
  { rule: 'routes' },
  (site) => {
    it('is reached as the routes say, whatever the query is', async () => {
      assert.equal((await ask(site().port, { path: '/api/7' })).status, 401);
      const reader = await site().reader();
      assert.equal((await ask(site().port, { path: '/api/7', headers: [reader] })).status, 200);
      for (const path of ['/admin/7', '/admin/7?resource=WIKI', '/admin/7?permission=WIKI:READ_ANY'])
        assert.equal((await ask(site().port, { path, headers: [reader] })).status, 403);
    });
  },
  printedFor(({ service }) => `http://localhost:${service}`, ['--routes']),
);

describe('a configuration that is printed', () => {
  for (const upstream of [
    'http://127.0.0.1:3000',
    'http://[::1]:3000',
    'https://localhost:8443',
    'http+unix:///run/wiki.sock',
  ])
    for (const configuration of printedFor(() => upstream)) {
      const { title, program } = configuration;
      it(`is taken by ${program} for ${upstream} (${title})`, function () {
        needsPrograms(this, program);
        const folder = tempFolder();
        const args = configuration.write(
          { folder, port: 18_443, svcApi: 4000, service: 3000 },
          (text, replacements) => {
            for (const [old, replacement] of Object.entries(replacements)) text = text.replaceAll(old, replacement);
            return text;
          },
        );
        const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin`, HOME: folder };
        const { status, stdout, stderr } = spawnSync(program, CHECKS[program](args), { encoding: 'utf8', env });
        assert.equal(status, 0, stdout + stderr);
      });
    }
});
