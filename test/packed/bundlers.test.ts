import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostEnv, mustRun, packedFile } from '../support/host.ts';
import { freePort } from '../support/port.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const PAGE = 'docs/library/opening.md';
const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];

/** A server that opens a store, requires a key, calls itself with and without one, and ends. */
const PROGRAM = `
  import { createServer } from 'node:http';
  import { createApp, openKeys, OPERATOR } from 'svc-api';
  import { bearerAuth } from 'svc-api/express';
  const keys = await openKeys();
  await createApp({ keys, console: true });
  const input = { name: 'Bundled', permissions: ['DOCKER:READ_ANY'], overwrite: true };
  const { key } = await keys.create(input, { actor: OPERATOR });
  const auth = bearerAuth({ keys, permission: 'DOCKER:READ_ANY' });
  const server = createServer((req, res) => auth(req, res, () => res.end(req.principal.apiKey.name)));
  server.listen(0, '127.0.0.1', async () => {
    const url = 'http://127.0.0.1:' + server.address().port;
    const answers = [];
    for (const headers of [{}, { authorization: 'Bearer ' + key }]) {
      const answer = await fetch(url, { headers });
      answers.push([answer.status, (await answer.text()).slice(0, 24)]);
    }
    console.log(JSON.stringify(answers));
    process.exit();
  });`;

/** A folder with the packed package, other packages and the files of an example. */
async function projectWith(packages: Record<string, string>, example: string): Promise<string> {
  const folder = tempFolder();
  cpSync(join(ROOT, 'examples/library', example), folder, { recursive: true });
  const dependencies = { 'svc-api': `file:${packedFile()}`, ...packages };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
  await mustRun('npm', INSTALL, { cwd: folder });
  return folder;
}

describe('bundlers', function () {
  this.timeout(600_000);

  describe('of programs', () => {
    let folder: string;
    let env: NodeJS.ProcessEnv;
    before(async () => {
      folder = await projectWith(
        {
          esbuild: '0.28.2',
          next: '16.4.6',
          react: '19.3.1',
          'react-dom': '19.3.1',
          '@types/react': '19.3.0',
          '@types/node': '^24',
          typescript: '6.0.3',
          vite: '8.3.8',
          webpack: '5.112.2',
          'webpack-cli': '7.3.1',
        },
        'next',
      );
      writeFileSync(join(folder, 'app.mjs'), PROGRAM);
      env = hostEnv({ SVC_API_DATABASE: join(folder, 'keys.sqlite'), NEXT_TELEMETRY_DISABLED: '1' });
    });

    const run = (command: string, ...args: string[]) =>
      mustRun(join(folder, 'node_modules/.bin', command), args, { cwd: folder, env });
    /** The output of the bundle, copied to an empty folder. */
    const answersOf = async (file: string) =>
      JSON.parse(await mustRun(process.execPath, [join(folder, file)], { cwd: folder, env })) as unknown;
    const ANSWERS = [
      [401, '{"code":"UNAUTHENTICATED'],
      [200, 'Bundled'],
    ];

    /** The page's row for a bundler. */
    function lineFor(bundler: string): string {
      const [, line] = new RegExp(`^\\| ${bundler} \\| \`(.+?)\` \\|`, 'm').exec(
        readFileSync(join(ROOT, PAGE), 'utf8'),
      )!;
      return line!;
    }

    it('build and run a server: esbuild, with its line of the page', async () => {
      const line = lineFor('esbuild');
      await run('esbuild', 'app.mjs', '--bundle', '--platform=node', '--format=esm', '--outfile=out/esbuild.mjs', line);
      assert.deepEqual(await answersOf('out/esbuild.mjs'), ANSWERS);
    });

    it('build and run a server: webpack, with its line of the page', async () => {
      const output = `experiments: { outputModule: true }, output: { path: ${JSON.stringify(join(folder, 'out'))}, filename: 'webpack.mjs', module: true }`;
      const config = `export default { mode: 'production', target: 'node', entry: './app.mjs', ${output}, ${lineFor('webpack')} };`;
      writeFileSync(join(folder, 'webpack.config.mjs'), config);
      await run('webpack');
      assert.deepEqual(await answersOf('out/webpack.mjs'), ANSWERS);
    });

    it('build and run a server: Vite, with and without its line of the page', async () => {
      for (const [name, ssr] of [
        ['plain', ''],
        ['whole', `ssr: { noExternal: true, ${lineFor('Vite')} }`],
      ]) {
        const config = `export default { build: { ssr: 'app.mjs', outDir: 'out/${name}' }, ${ssr} };`;
        writeFileSync(join(folder, 'vite.config.mjs'), config);
        await run('vite', 'build');
        assert.deepEqual(await answersOf(`out/${name}/app.js`), ANSWERS, name);
      }
    });

    it('build and run a server: Next, with its line of the page, as a route handler and as a proxy', async () => {
      assert.ok(readFileSync(join(folder, 'next.config.mjs'), 'utf8').includes(lineFor('Next')));
      await run('next', 'build');
      const port = await freePort();
      await asServer(
        folder,
        env,
        ['node_modules/next/dist/bin/next', 'start', '-H', '127.0.0.1'],
        port,
        async (ask) => {
          assert.deepEqual(await ask('/backups/latest'), [401, 200, { by: 'Reader' }]);
          assert.deepEqual(await ask('/private/latest'), [401, 200, { latest: 'sda-1' }]);
        },
      );
    });
  });

  it('build and run a server: SvelteKit', async () => {
    const folder = await projectWith(
      {
        '@sveltejs/adapter-node': '6.0.1',
        '@sveltejs/kit': '3.2.0',
        '@types/node': '^24',
        svelte: '5.57.3',
        typescript: '6.0.3',
        vite: '8.3.8',
      },
      'sveltekit',
    );
    const env = hostEnv({ SVC_API_DATABASE: join(folder, 'keys.sqlite'), HOST: '127.0.0.1' });
    const bin = (name: string) => join(folder, 'node_modules/.bin', name);
    await mustRun(bin('svelte-kit'), ['sync'], { cwd: folder, env });
    await mustRun(bin('tsc'), ['-p', '.'], { cwd: folder, env });
    await mustRun(bin('vite'), ['build'], { cwd: folder, env });
    await asServer(folder, env, ['build'], await freePort(), async (ask) => {
      assert.deepEqual(await ask('/backups/latest'), [401, 200, { by: 'Reader' }]);
    });
  });
});

/** Calls a path of a server: the status without a key, and the status and answer with one. */
type Ask = (path: string) => Promise<[withoutKey: number, status: number, answer: unknown]>;

async function asServer(
  folder: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  port: number,
  work: (ask: Ask) => Promise<void>,
): Promise<void> {
  const create = ['apikey', 'create', 'Reader', '--permissions', 'SERVICES:READ_ANY'];
  const secret = (await mustRun(join(folder, 'node_modules/.bin/svc-api'), create, { cwd: folder, env })).trim();
  const server = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...env, PORT: `${port}` },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    const url = `http://127.0.0.1:${port}`;
    await until(() =>
      fetch(url).then(
        () => true,
        () => server.exitCode !== null,
      ),
    );
    await work(async (path) => {
      const { status } = await fetch(url + path);
      const answer = await fetch(url + path, { headers: { authorization: `Bearer ${secret}` } });
      return [status, answer.status, await answer.json()];
    });
  } finally {
    server.kill();
  }
}
