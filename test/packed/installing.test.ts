import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bareMachine, installPrograms, runOn } from '../support/bare-machine.ts';
import { packedFile, run } from '../support/host.ts';
import { blockWith, blocksOf } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/installing.md';
const NPM = { npm_config_audit: 'false', npm_config_fund: 'false', npm_config_prefer_offline: 'true' };

describe('docs/installing.md, in a fresh home without Python, make or a compiler', () => {
  let tarball: string;
  let folder: string;
  let env: NodeJS.ProcessEnv;
  /** Runs a script in the folder of the packed file. */
  const sh = (script: string) => runOn(env, `set -e; ${script}`, folder);
  before(async () => {
    tarball = packedFile();
    folder = dirname(tarball);
    const machine = bareMachine(await installPrograms({ npm: '12.2.0' }), dirname(process.execPath));
    const prefix = join(machine['HOME']!, '.local');
    mkdirSync(prefix);
    // A prefix that npm can write to, as after `npm config set prefix ~/.local`.
    env = { ...machine, ...NPM, npm_config_prefix: prefix };
  });

  it('installs a program for all of one’s commands, once its folder is in the PATH', async () => {
    const install = blockWith('npm install --global', PAGE);
    const path = blockWith('npm prefix --global', PAGE);
    const { code, stdout, stderr } = await sh(path + install);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^svc-api\/\d+\.\d+\.\d+ /m);
  });

  it('has the examples, and the unit where docs/deploying.md copies it from', async () => {
    const [copied] = /\$\(npm root --global\)\/\S+\.service/.exec(
      blockWith('enable --now svc-api\n', 'docs/deploying.md'),
    )!;
    for (const path of [copied, '$(npm root --global)/svc-api/examples/terraform/key.mjs'])
      assert.equal((await sh(`test -f "${path}"`)).code, 0, path);
  });

  it('makes a store in the home, and nowhere else', async () => {
    const { code } = await sh(`${blockWith('npm prefix --global', PAGE)}svc-api apikey create --name A --roles GUEST`);
    assert.equal(code, 0);
    assert.ok(existsSync(join(env['HOME']!, '.local/share/svc-api/keys.sqlite')));
  });

  it('finds pg where both are global', async () => {
    assert.equal((await sh('npm install --global pg@8')).code, 0);
    const url = 'postgres://nobody@127.0.0.1:1/keys';
    const { stdout } = await sh(
      `${blockWith('npm prefix --global', PAGE)}svc-api apikey list --json --database ${url} || true`,
    );
    assert.match(stdout, /127\.0\.0\.1.*"code": "STORE_UNAVAILABLE"/s);
    assert.doesNotMatch(stdout, /npm install/);
  });

  it('is removed as docs/deploying.md has it', async () => {
    assert.equal((await sh(blockWith('npm uninstall', 'docs/deploying.md'))).code, 0);
    assert.ok(!existsSync(join(env['HOME']!, '.local/bin/svc-api')));
  });

  it('runs without being installed', async () => {
    const { code, stdout, stderr } = await sh(blockWith('npx --yes', PAGE));
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^svc-api\/\d+\.\d+\.\d+ /);
  });

  it('makes a CLI with a resource of its own, as docs/library/cli-schema.md has it', async () => {
    const project = join(tempFolder(), 'garden');
    mkdirSync(project);
    const script = blocksOf('docs/library/cli-schema.md')
      .join('')
      .replace(/\.\/svc-api-[\d.]+\.tgz/, `'${tarball}'`);
    const path = [process.env['PATH'], join(ROOT, 'test/support/bin')].join(':');
    const { code, stdout, stderr } = await run('sh', ['-ec', script], { cwd: project, env: { ...env, PATH: path } });
    assert.equal(code, 0, stderr);
    const replies = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { data: { water: object | null }; errors?: { message: string }[] });
    assert.deepEqual(
      replies.map(({ data, errors }) => [data.water, errors?.[0]!.message]),
      [
        [null, 'This key lacks BED:UPDATE_ANY.'],
        [{ name: 'Herbs', watered: true }, undefined],
      ],
    );
  });
});
