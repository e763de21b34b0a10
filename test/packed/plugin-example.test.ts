import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { changeDirectly } from '../support/direct.ts';
import { type Host, hostEnv, installHost, mustRun, ON_CORE, packedFile } from '../support/host.ts';
import { finished, ROOT, startCli } from '../support/process.ts';
import { startListening } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

type Cli = (...args: readonly string[]) => Promise<string>;

describe('the plugin of the examples, packed', () => {
  let tarball: string;
  before(async () => void (tarball = await packed('svc-api-team')));

  async function hasTeams(cli: Cli): Promise<void> {
    await cli('apikey', 'create', '--name', 'CI', '--roles', 'GUEST', '--team', 'Payments');
    await cli('apikey', 'create', '--name', 'Other', '--roles', 'GUEST');
    const { keys } = JSON.parse(await cli('apikey', 'list', '--team', 'payments', '--json')) as { keys: object[] };
    assert.deepEqual(
      keys.map((key) => [(key as { name: string }).name, (key as { team: string }).team]),
      [['CI', 'Payments']],
    );
    assert.match(await cli('apikey', 'create', '--help'), /--team=<text>/);
  }

  it('works in svc-api, by plugins install, and is gone after plugins uninstall', async () => {
    const home = tempFolder();
    const env = hostEnv({ XDG_DATA_HOME: home, HOME: home });
    const run = (...args: readonly string[]) => finished(startCli(args, { env }));
    const cli: Cli = async (...args) => {
      const { code, stdout, stderr } = await run(...args);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    assert.equal(await cli('plugins'), 'No plugins installed.\n');
    assert.equal(await cli('plugins', 'install', tarball), 'Installed svc-api-team 1.0.0.\n');
    assert.equal(await cli('plugins', 'install', tarball), 'Installed svc-api-team 1.0.0.\n');
    assert.equal(await cli('plugins'), 'svc-api-team 1.0.0\n');
    await hasTeams(cli);
    assert.equal(await cli('plugins', 'uninstall', 'svc-api-team'), 'Uninstalled svc-api-team.\n');
    assert.doesNotMatch(await cli('apikey', 'show', 'CI', '--json'), /team/);
    await cli('plugins', 'install', join(ROOT, 'examples/plugins/svc-api-team'));
    assert.match(await cli('apikey', 'show', 'CI', '--json'), /"team": "Payments"/);

    const unknown = await run('plugins', 'uninstall', 'svc-api-taem');
    assert.deepEqual([unknown.code, /Did you mean svc-api-team/.test(unknown.stderr)], [2, true]);
    const missing = await run('plugins', 'install', join(home, 'nothing.tgz'));
    assert.deepEqual([missing.code, /PLUGIN_FAILED/.test(missing.stderr)], [1, true]);
    const noPlugin = await run('plugins', 'install', join(ROOT, 'examples/web-app'));
    assert.match(noPlugin.stderr, /is not a plugin/);
    assert.equal(await cli('plugins'), 'svc-api-team 1.0.0\n');
  });

  it('works in a host that lists it', async () => {
    const host: Host = await installHost(
      { 'svc-api': `file:${packedFile()}`, ...ON_CORE[5], 'svc-api-team': `file:${tarball}` },
      (manifest) => manifest.oclif.plugins?.push('svc-api-team'),
    );
    await hasTeams(async (...args) => {
      const { code, stdout, stderr } = await host.cli(args);
      assert.equal(code, 0, stderr);
      return stdout;
    });
  });
});

describe('the plugin of the examples that notifies ntfy, packed', () => {
  it('posts a notice of a created key, and one to try it', async () => {
    const home = tempFolder();
    const env = hostEnv({ XDG_DATA_HOME: home, HOME: home, SVC_API_CONFIG: join(home, 'svc-api.yaml') });
    const cli: Cli = async (...args) => {
      const { code, stdout, stderr } = await finished(startCli(args, { env }));
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const received: { title: string; text: string; path: string; id: string; token: string }[] = [];
    const ntfy = createServer(async (request, response) => {
      const { title, authorization, 'x-sequence-id': id } = request.headers;
      const body = await text(request);
      received.push({
        title: String(title),
        text: body,
        path: request.url!,
        id: String(id),
        token: String(authorization),
      });
      response.end('{}');
    }).listen(0, '127.0.0.1');
    await once(ntfy, 'listening');
    const url = `http://127.0.0.1:${(ntfy.address() as AddressInfo).port}/keys`;
    writeFileSync(join(home, 'ntfy.token'), 'tk_example\n', { mode: 0o600 });
    const config = `notices: { channel: ntfy, url: "${url}", secretFile: ntfy.token, events: [key.created] }\n`;
    writeFileSync(join(home, 'svc-api.yaml'), config);
    await cli('plugins', 'install', await packed('svc-api-ntfy'));
    await cli('apikey', 'notices', 'test');
    assert.deepEqual([received[0]?.title, received[0]?.token], ['svc-api: test', 'Bearer tk_example']);
    const serve = await startListening(['serve', '--port', '0'], env);
    try {
      await cli('apikey', 'create', '--name', 'CI', '--roles', 'GUEST');
      await until(() => received.length > 1);
      const { title, text, path, id } = received[1]!;
      assert.deepEqual([title, text.startsWith('CI ('), path], ['svc-api: key.created', true, '/keys']);
      assert.match(id, /^msg_/);
    } finally {
      await serve.stop();
      ntfy.close();
    }
  });
});

describe('the plugin of the examples that approves deploys, packed', () => {
  it('is asked and approves by command, on a store and on a server, in GraphQL, and on its page', async () => {
    const home = tempFolder();
    const config = join(home, 'svc-api.yaml');
    const database = join(home, 'keys.sqlite');
    const paths = { XDG_DATA_HOME: home, HOME: home, SVC_API_CONFIG: config, SVC_API_DATABASE: database };
    const env = hostEnv(paths);
    const run = (args: readonly string[], more: NodeJS.ProcessEnv) =>
      finished(startCli(args, { env: { ...env, ...more } }));
    const cli = async (args: readonly string[], more: NodeJS.ProcessEnv = {}) => {
      const { code, stdout, stderr } = await run(args, more);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const json = async (args: readonly string[], more?: NodeJS.ProcessEnv) =>
      JSON.parse(await cli([...args, '--json'], more)) as Record<string, string>;
    const refusalOf = async (args: readonly string[], more: NodeJS.ProcessEnv = {}) => {
      const { code, stdout } = await run([...args, '--json'], more);
      assert.notEqual(code, 0);
      return (JSON.parse(stdout) as { code: string }).code;
    };
    await cli(['plugins', 'install', await packed('svc-api-approval')]);

    writeFileSync(config, 'credentials: [bearer, basic]\napproval:\n  wait: 0\n');
    const invalid = await run(['deploy', 'list'], {});
    assert.match(invalid.stderr.replaceAll(/\s+/g, ' '), /:3:9: "approval.wait": must be at least 1 minute/);
    writeFileSync(config, 'credentials: [bearer, basic]\napproval: { wait: 5 }\n');

    const ci = await json(['apikey', 'create', '--name', 'CI', '--permissions', 'DEPLOY:CREATE_ANY,DEPLOY:UPDATE_ANY']);
    const ada = await json(['apikey', 'create', '--name', 'Ada', '--permissions', 'DEPLOY:READ_ANY,DEPLOY:UPDATE_ANY']);
    const first = await json(['deploy', 'ask', 'web <1>']);
    assert.deepEqual([first['asker'], first['approver']], ['operator', null]);
    assert.match(await cli(['deploy', 'list']), /web <1>, for operator, waiting/);

    const serve = await startListening(['serve', '--port', '0'], env);
    try {
      const as = ({ key }: Record<string, string>) => ({
        SVC_API_DATABASE: '',
        SVC_API_SERVER: serve.url,
        SVC_API_KEY: key!,
      });
      const page = async () => {
        const authorization = `Basic ${Buffer.from(`:${ada['key']}`).toString('base64')}`;
        return (await fetch(`${serve.url}/deploys`, { headers: { authorization } })).text();
      };
      const asked = await json(['deploy', 'ask', 'web 2'], as(ci));
      assert.equal(asked['asker'], 'CI');
      for (const text of ['web &#60;1>, for operator', 'web 2, for CI']) assert.ok((await page()).includes(text));
      assert.equal((await fetch(`${serve.url}/deploys`)).status, 401);

      assert.equal(await refusalOf(['deploy', 'approve', asked['id']!], as(ci)), 'DEPLOY_REFUSED');
      assert.equal(await refusalOf(['deploy', 'ask', 'web 3'], as(ada)), 'FORBIDDEN');
      const approved = await json(['deploy', 'approve', asked['id']!], as(ada));
      assert.deepEqual(approved, { ...asked, approver: 'Ada' });
      assert.ok(!(await page()).includes('web 2'));
      assert.equal(await refusalOf(['deploy', 'approve', asked['id']!]), 'DEPLOY_REFUSED');

      const approve = `mutation { approveDeploy(id: "${first['id']}") { what approver } }`;
      const { data } = (await query(serve.url, ada['key'], approve)).body;
      assert.deepEqual(data, { approveDeploy: { what: 'web <1>', approver: 'Ada' } });
      assert.deepEqual(await json(['deploy', 'list'], as(ada)), await json(['deploy', 'list']));

      await changeDirectly(database, 'update plugin_svc_api_approval_deploys set at = at - 300001');
      assert.deepEqual(await json(['deploy', 'list'], as(ada)), []);
    } finally {
      await serve.stop();
    }
  });
});

/** Packs a plugin from the examples. */
async function packed(name: string): Promise<string> {
  const folder = tempFolder();
  await mustRun('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], {
    cwd: join(ROOT, 'examples/plugins', name),
  });
  return join(folder, readdirSync(folder)[0]!);
}
