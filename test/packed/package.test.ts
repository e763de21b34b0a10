import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun, packPackage } from '../support/host.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

describe('the packed package', () => {
  let tarball: string;
  before(async () => {
    tarball = await packPackage();
  });

  it('holds what runs and its documentation, and nothing else', async () => {
    const files = (await mustRun('tar', ['-tzf', tarball], { cwd: ROOT })).trim().split('\n');
    const wanted = [
      'bin/run.js',
      'bin/node-version.js',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/commands/serve.js',
      'oclif.manifest.json',
      'README.md',
      'LICENSE',
    ];
    for (const file of wanted) assert.ok(files.includes(`package/${file}`), file);
    for (const file of files)
      assert.match(
        file,
        /^package\/(bin\/(run|node-version)\.js|dist\/.*\.(js|js\.map|d\.ts)|docs\/.*|oclif\.manifest\.json|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
      );
  });

  it('guards any Hono app as a library, with types', async () => {
    const folder = tempFolder();
    writeFileSync(
      join(folder, 'package.json'),
      JSON.stringify({ name: 'consumer', private: true, type: 'module', dependencies: { 'svc-api': `file:${tarball}`, hono: '^4' } }),
    );
    await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
    const program = `
      import { Hono } from 'hono';
      import { bearerAuth, createApp, openKeys } from 'svc-api';
      const keys = await openKeys({ database: './keys.sqlite' });
      const { secret } = await keys.create({ name: 'Reader', permissions: ['DOCKER:READ_ANY'] }, 'operator');
      const app = new Hono().use('/docker/*', bearerAuth({ keys, permission: 'DOCKER:READ_ANY' }));
      app.get('/docker/ps', (c) => c.text('containers'));
      app.route('/', await createApp({ keys }));
      const headers = { authorization: \`Bearer \${secret}\` };
      console.log((await app.request('/docker/ps')).status, await (await app.request('/docker/ps', { headers })).text(), (await app.request('/healthz')).status);
      await keys.close();
    `;
    writeFileSync(join(folder, 'program.mts'), program);
    const stdout = await mustRun(process.execPath, ['program.mts'], { cwd: folder });
    assert.equal(stdout, '401 containers 200\n');
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--types',
      'node',
      '--typeRoots',
      join(ROOT, 'node_modules/@types'),
    ];
    await mustRun(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, 'program.mts'], { cwd: folder });
  });
});
