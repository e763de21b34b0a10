import assert from 'node:assert/strict';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { hostEnv, mustRun } from '../support/host.ts';
import { type Finished, finished, startCli } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const PLUGIN = { hooks: {} };

describe('plugins install', () => {
  let home: string;
  let cwd: string;
  let manifest: string;
  beforeEach(() => {
    home = tempFolder();
    cwd = tempFolder();
    manifest = join(home, 'svc-api', 'package.json');
  });

  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> =>
    finished(startCli(['plugins', ...args], { cwd, env: hostEnv({ XDG_DATA_HOME: home, HOME: home, ...env }) }));
  /** The error of a command on keys; undefined if it runs. */
  const faultOfKeys = async (): Promise<string | undefined> => {
    const args = 'apikey create --dry-run --json --name Trial --roles GUEST'.split(' ');
    const child = startCli(args, { cwd, env: hostEnv({ XDG_DATA_HOME: home, HOME: home }) });
    const { error, code } = JSON.parse((await finished(child)).stdout) as { error?: string; code?: string };
    assert.equal(code, error && 'FEATURE_INVALID', error);
    return error;
  };
  const must = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const refused = async (args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> => {
    const { code, stderr } = await run(args, env);
    assert.deepEqual([code, stderr.includes('PLUGIN_FAILED')], [1, true], stderr);
    return stderr;
  };
  /** Makes a package in the working directory. */
  const make = (folder: string, version: string, oclif: object | undefined): void => {
    mkdirSync(join(cwd, folder), { recursive: true });
    writeFileSync(join(cwd, folder, 'package.json'), JSON.stringify({ name: 'svc-api-team', version, oclif }));
  };
  /** Packs a package into a file in the working directory. */
  const pack = async (file: string, version: string, oclif: object | undefined): Promise<void> => {
    const folder = mkdtempSync(join(cwd, 'pack-'));
    const json = JSON.stringify({ name: 'svc-api-team', version, oclif });
    writeFileSync(join(folder, 'package.json'), json);
    await mustRun('npm', ['pack', '--ignore-scripts'], { cwd: folder });
    renameSync(
      join(
        folder,
        readdirSync(folder).find((name) => name.endsWith('.tgz'))!,
      ),
      join(cwd, file),
    );
  };

  it('leaves a plugin as it is if its new version is no plugin', async () => {
    await pack('one.tgz', '1.0.0', PLUGIN);
    await pack('two.tgz', '2.0.0', undefined);
    await must('install', 'one.tgz');
    const before = readFileSync(manifest, 'utf8');
    assert.match(await refused(['install', './two.tgz']), /svc-api-team is not a plugin/);
    assert.equal(await must(), 'svc-api-team 1.0.0\n');
    assert.equal(readFileSync(manifest, 'utf8'), before);
  });

  it('explains why a plugin is refused, and leaves installed ones as they are', async () => {
    const hooked = { hooks: { 'svc-api:feature': './feature.js' } };
    const makeWith = (feature: string, more: object = {}) => {
      make('team', '2.0.0', hooked);
      const path = join(cwd, 'team', 'package.json');
      const given = JSON.parse(readFileSync(path, 'utf8')) as object;
      writeFileSync(path, JSON.stringify({ ...given, type: 'module', ...more }));
      writeFileSync(join(cwd, 'team', 'feature.js'), feature);
    };
    const sound = `export default async () => ({ name: 'svc-api-team' });`;
    makeWith(sound);
    await must('install', './team');
    const before = readFileSync(manifest, 'utf8');
    const table = 'plugin_svc_api_team_x';
    const store = `async () => ({ tables: { ${table}: ['id'] }, migrations: [{ name: 'x', up: async () => {} }] })`;
    for (const [feature, more, expected] of [
      [`export default async () => { throw new Error('no disk'); };`, {}, /svc-api-team failed: no disk/],
      [`export default async () => ({ name: 'svc-api-team', feilds: {} });`, {}, /feilds.*Did you mean "?fields/],
      ['export default async () => ({', {}, /feature\.js/],
      [`export default async () => ({ name: 'svc-api-team', needs: ['x-y'] });`, {}, /needs the feature "x-y"/],
      [
        `export default async () => ({ name: 'svc-api-team', store: ${store} });`,
        {},
        /do not create the table plugin_svc_api_/,
      ],
      ['process.exit(3);', {}, /svc-api-team, commands end without/],
      [`setTimeout(() => { throw new Error('too late'); }); await new Promise(() => {});`, {}, /Error: too late/],
      [sound, { peerDependencies: { 'svc-api': '^99' } }, /\^99/],
    ] as const) {
      makeWith(feature, more);
      const stderr = (await refused(['install', './team'])).replaceAll(/\s+/g, ' ');
      assert.match(stderr, expected);
      assert.match(stderr, /svc-api-team was not installed\. /);
      assert.equal(readFileSync(manifest, 'utf8'), before);
      assert.equal(readFileSync(join(home, 'svc-api/node_modules/svc-api-team/feature.js'), 'utf8'), sound);
    }
  });

  /** Makes a package with a feature in the working directory. */
  const makeFeature = (name: string, feature: string, peerDependencies: object = {}): void => {
    mkdirSync(join(cwd, name), { recursive: true });
    const oclif = { hooks: { 'svc-api:feature': './feature.js' } };
    const json = { name, version: '1.0.0', type: 'module', oclif, peerDependencies };
    writeFileSync(join(cwd, name, 'package.json'), JSON.stringify(json));
    writeFileSync(join(cwd, name, 'feature.js'), `${feature}\nexport default async () => ({ name: '${name}' });`);
  };

  it('updates outdated plugins one by one', async () => {
    const names = ['svc-api-one', 'svc-api-two'];
    for (const name of names) {
      makeFeature(name, '');
      await must('install', `./${name}`);
      // The effect of an update of svc-api on a plugin.
      const path = join(home, 'svc-api/node_modules', name, 'package.json');
      const json = JSON.parse(readFileSync(path, 'utf8')) as object;
      writeFileSync(`${path}.old`, JSON.stringify({ ...json, peerDependencies: { 'svc-api': '^99' } }));
    }
    for (const name of names) {
      const path = join(home, 'svc-api/node_modules', name, 'package.json');
      renameSync(`${path}.old`, path);
    }
    makeFeature('svc-api-one', '', { 'svc-api': '^99' });
    assert.match(await refused(['install', './svc-api-one']), /svc-api-one is invalid/);
    makeFeature('svc-api-one', '');
    const { code, stdout, stderr } = await run(['install', './svc-api-one']);
    assert.deepEqual([code, stdout], [0, 'Installed svc-api-one 1.0.0.\n'], stderr);
    assert.match(stderr, /Warning: .*svc-api-two/);
    assert.equal((await run(['install', './svc-api-two'])).stderr.includes('Warning'), false);
  });

  it('installs a plugin that keeps a timer, with which commands end', async () => {
    makeFeature('svc-api-one', 'setInterval(() => {}, 1000);');
    await must('install', './svc-api-one');
    const env = hostEnv({ XDG_DATA_HOME: home, HOME: home });
    const { code, stdout } = await finished(startCli(['doctor', '--json'], { cwd, env }));
    assert.equal(code, 1);
    assert.ok(Array.isArray((JSON.parse(stdout) as { checks: unknown }).checks));
  });

  it('installs a plugin that prints much, and all of it arrives before a command ends', async () => {
    makeFeature('svc-api-one', '');
    const path = join(cwd, 'svc-api-one', 'package.json');
    const json = JSON.parse(readFileSync(path, 'utf8')) as { oclif: { hooks: object } };
    const oclif = { hooks: { ...json.oclif.hooks, postrun: './postrun.js' } };
    writeFileSync(path, JSON.stringify({ ...json, oclif }));
    const print = `process.stderr.write('x'.repeat(5_000_000));`;
    writeFileSync(join(cwd, 'svc-api-one', 'postrun.js'), `export default async () => void ${print}`);
    await must('install', './svc-api-one');
    assert.equal((await run([])).stderr.length, 5_000_000);
    const full = openSync('/dev/full', 'w');
    const env = hostEnv({ XDG_DATA_HOME: home, HOME: home });
    const child = startCli(['plugins'], { cwd, env, stdio: ['ignore', full, 'pipe'] });
    const stderr = await text(child.stderr!);
    closeSync(full);
    assert.match(stderr, /OUTPUT_FAILED/);
    assert.equal(/Unhandled|own-program/.test(stderr), false, stderr.slice(0, 1000));
  });

  it('leaves no folder behind if a signal ends it', async () => {
    const [started, temporary] = [join(cwd, 'started'), tempFolder()];
    const wait = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(started)}, ''); for (;;);`;
    makeFeature('svc-api-one', wait);
    const env = hostEnv({ XDG_DATA_HOME: home, HOME: home, TMPDIR: temporary });
    const child = startCli(['plugins', 'install', './svc-api-one'], { cwd, env });
    const ended = finished(child);
    await until(() => existsSync(started));
    child.kill('SIGTERM');
    const { code, stderr } = await ended;
    assert.deepEqual([code, /Ended by SIGTERM/.test(stderr)], [143, true], stderr);
    assert.deepEqual(
      readdirSync(temporary).filter((name) => name.startsWith('svc-api-plugin-')),
      [],
    );
    assert.equal(await must(), 'No plugins installed.\n');
  });

  it('updates by the same URL, repository, path or file', async () => {
    const server = createServer((_, response) => response.end(readFileSync(join(cwd, 'x.tgz'))));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.tgz`;
      for (const [version, ...specs] of [
        ['1.0.0', url, url, 'file:./x.tgz'],
        ['1.1.0', 'x.tgz', url],
      ] as const) {
        await pack('x.tgz', version, PLUGIN);
        for (const spec of specs) assert.equal(await must('install', spec), `Installed svc-api-team ${version}.\n`);
      }
    } finally {
      server.closeAllConnections();
      server.close();
    }
    make('repository', '2.0.0', PLUGIN);
    const git = (...args: readonly string[]) => mustRun('git', args, { cwd: join(cwd, 'repository') });
    await git('init', '--quiet');
    await git('add', '.');
    await git('-c', 'user.name=x', '-c', 'user.email=x@localhost', 'commit', '--quiet', '--message', 'One');
    for (let time = 0; time < 2; time++)
      assert.equal(await must('install', `git+file://${join(cwd, 'repository')}`), 'Installed svc-api-team 2.0.0.\n');
    for (const text of ['one', 'two']) {
      make('folder', '3.0.0', PLUGIN);
      writeFileSync(join(cwd, 'folder', 'feature.js'), text);
      await must('install', './folder');
      assert.equal(readFileSync(join(home, 'svc-api/node_modules/svc-api-team/feature.js'), 'utf8'), text);
    }
    assert.equal(await must(), 'svc-api-team 3.0.0\n');
  });

  it('takes a folder of the working directory only by its path', async () => {
    make('svc-api-team', '1.0.0', PLUGIN);
    // No registry listens on port 9.
    const none = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' };
    await refused(['install', 'svc-api-team'], none);
    for (const missing of ['./svc-api-taem', 'svc-api-team-9.tgz', 'file:./svc-api-taem'])
      assert.match(await refused(['install', missing], { PATH: '' }), /There is no file or folder /);
    assert.equal(await must(), 'No plugins installed.\n');
    assert.equal(await must('install', 'file:svc-api-team'), 'Installed svc-api-team 1.0.0.\n');
  });

  it('names a package.json in the data folder that cannot be read or written', async () => {
    make('svc-api-team', '1.0.0', PLUGIN);
    mkdirSync(join(home, 'svc-api'));
    writeFileSync(manifest, '{"oclif": {"plu');
    for (const args of [[], ['install', './svc-api-team'], ['uninstall', 'svc-api-team']])
      assert.ok((await refused(args)).includes(manifest), args.join(' '));
    assert.ok((await faultOfKeys())?.includes(manifest));
    assert.equal(readFileSync(manifest, 'utf8'), '{"oclif": {"plu');
    const file = join(cwd, 'file');
    writeFileSync(file, '');
    const stderr = await refused(['install', './svc-api-team'], { XDG_DATA_HOME: file });
    assert.ok(stderr.includes(join(file, 'svc-api', 'package.json')), stderr);
  });

  it('lets no command run on keys without an installed plugin whose files are missing', async () => {
    make('svc-api-team', '1.0.0', PLUGIN);
    await must('install', './svc-api-team');
    rmSync(join(home, 'svc-api/node_modules/svc-api-team'), { recursive: true });
    assert.match((await faultOfKeys())!, /svc-api-team .*missing/);
    assert.equal(await must(), 'svc-api-team (its files are missing)\n');
    await must('install', './svc-api-team');
    assert.equal(await faultOfKeys(), undefined);
    rmSync(join(home, 'svc-api/node_modules/svc-api-team'), { recursive: true });
    await must('uninstall', 'svc-api-team');
    assert.equal(await faultOfKeys(), undefined);
  });

  it('takes a plugin without a version, but not svc-api itself', async () => {
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'svc-api-bare', oclif: PLUGIN }));
    assert.equal(await must('install', './'), 'Installed svc-api-bare.\n');
    assert.equal(await must(), 'svc-api-bare\n');
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'svc-api', version: '1.0.0', oclif: PLUGIN }));
    assert.match(await refused(['install', './']), /svc-api is this program/);
    assert.equal(await must(), 'svc-api-bare\n');
  });

  it('keeps a plugin in the list if npm cannot uninstall it', async () => {
    make('svc-api-team', '1.0.0', PLUGIN);
    await must('install', './svc-api-team');
    await refused(['uninstall', 'svc-api-team'], { PATH: '' });
    assert.equal(await must(), 'svc-api-team 1.0.0\n');
    assert.equal(await must('uninstall', 'svc-api-team'), 'Uninstalled svc-api-team.\n');
    assert.equal(await must(), 'No plugins installed.\n');
  });
});
