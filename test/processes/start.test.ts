import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { BIN, cleanEnv, type Finished, finished, ROOT } from '../support/process.ts';
import { needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };

function run(file: string, ...args: string[]): Promise<Finished> {
  return finished(spawn(file, args, { env: cleanEnv() }));
}

function refusal(version: string): Finished {
  const hint = 'Install one of those versions, or run "npx svc-api" in a checkout, which brings its own.';
  return {
    stdout: '',
    stderr: `Error: svc-api needs Node ${engines.node}; this is ${version}. ${hint}\n`,
    code: 1,
    signal: null,
  };
}

/** A Node 20 or older on this machine, if there is one. */
function oldNode(): { file: string; version: string } | undefined {
  const folders = ['/usr/bin', '/usr/local/bin', ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders
    .map((folder) => join(folder, 'node'))
    .filter((file) => existsSync(file))
    .map((file) => ({ file, version: execFileSync(file, ['--version'], { encoding: 'utf8' }).trim().slice(1) }))
    .find(({ version }) => Number.parseInt(version, 10) <= 20);
}

describe('bin/run.js', () => {
  const old = oldNode();
  if (old) {
    it(`says on Node ${old.version} of this machine which versions it needs, in one line`, async () => {
      assert.deepEqual(await run(old.file, BIN, 'apikey', '--create'), refusal(old.version));
    });
  }

  it('starts on just the versions of package.json', async () => {
    assert.equal(engines.node, '^22.22.2 || ^24.15.0 || >=26', 'the versions below follow from this');
    const rows = [
      ['20.20.2', false],
      ['22.22.1', false],
      ['22.22.2', true],
      ['22.23.0', true],
      ['23.11.0', false],
      ['24.14.9', false],
      ['24.15.0', true],
      ['25.9.0', false],
      ['26.0.0', true],
      ['30.1.2', true],
    ] as const;
    for (let index = 0; index < rows.length; index += 2) {
      await Promise.all(
        rows.slice(index, index + 2).map(async ([version, supported]) => {
          const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
          const result = await run(process.execPath, '--import', `data:text/javascript,${versions}`, BIN, '--version');
          if (supported) assert.deepEqual([result.stderr, result.code], ['', 0], version);
          else assert.deepEqual(result, refusal(version));
        }),
      );
    }
  });
});

describe('a checkout that is not built', () => {
  it('says what to run', async () => {
    const root = tempFolder();
    for (const part of ['bin', 'package.json']) cpSync(join(ROOT, part), join(root, part), { recursive: true });
    for (const args of [['--version'], ['serve'], ['autocomplete', 'bash']]) {
      const { stderr, code } = await run(process.execPath, join(root, 'bin/run.js'), ...args);
      assert.deepEqual([stderr, code], ['Error: svc-api is not built yet. Run "npm run build" in its checkout.\n', 1]);
    }
  });
});

describe('a user without a home folder', () => {
  it('gets the version, and sees where the store would be', async function () {
    needsRoot(this);
    const asStranger = (...args: string[]) =>
      finished(
        spawn(process.execPath, [BIN, ...args], { uid: 54_321, gid: 54_321, env: { PATH: process.env['PATH'] } }),
      );
    const version = await asStranger('--version');
    assert.deepEqual([version.stderr, version.code], ['', 0]);
    const created = await asStranger('apikey', '--create', '--name', 'A key', '--roles', 'GUEST');
    assert.equal(created.stdout, '');
    assert.match(
      created.stderr,
      /^Error: The key store cannot be created: permission denied\..* in the folder \/\. .*HOME/,
    );
    assert.equal(created.code, 1);
  });
});

describe('npm start', () => {
  it('says how to go on where its port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const env = cleanEnv({ SVC_API_PORT: String(port), XDG_DATA_HOME: tempFolder() });
    const { stderr, code } = await finished(spawn(process.execPath, [join(ROOT, 'scripts/start.ts')], { env }));
    taken.close();
    const hint = 'Choose another with SVC_API_PORT, or 0 for a free one.';
    assert.deepEqual([stderr, code], [`Error: The server cannot start: port ${port} is taken. ${hint}\n`, 1]);
  });
});

describe('bin/dev.js', () => {
  it('runs the sources, even beside a stale build', async () => {
    const root = tempFolder();
    for (const part of ['bin', 'src', 'scripts', 'package.json'])
      cpSync(join(ROOT, part), join(root, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
    const source = join(root, 'src', 'commands', 'serve.ts');
    const text = readFileSync(source, 'utf8');
    writeFileSync(source, text.replace('Serve a GraphQL endpoint', 'Serve a changed endpoint'));
    mkdirSync(join(root, 'dist', 'commands'), { recursive: true });
    writeFileSync(join(root, 'dist', 'commands', 'serve.js'), 'throw new Error("This is stale.");');

    const dev = join(root, 'bin', 'dev.js');
    const [help, create] = await Promise.all([
      run(process.execPath, dev, 'serve', '--help'),
      run(
        process.execPath,
        dev,
        'apikey',
        '--create',
        '--name',
        'A key',
        '--roles',
        'GUEST',
        '--database',
        join(root, 'keys.sqlite'),
      ),
    ]);
    assert.match(help.stdout, /^Serve a changed endpoint that requires an API key\.\n/);
    assert.deepEqual([help.stderr, help.code], ['', 0]);
    assert.match(create.stdout, /^svc_\w+\n$/);
    assert.equal(create.code, 0);
  });
});
