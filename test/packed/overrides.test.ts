import assert from 'node:assert/strict';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Host, installHost, packedFile } from '../support/host.ts';
import { cleanEnv } from '../support/process.ts';
import { runParts } from '../support/run-parts.ts';
import { tempFolder } from '../support/temp.ts';

/** Versions older than those that svc-api was built with. */
const OVERRIDES = { hono: '4.13.18', jose: '6.2.17' };

describe('a host that overrides the versions of packages that svc-api depends on', () => {
  let host: Host;
  before(async () => {
    const packages = { 'svc-api': `file:${packedFile()}` };
    host = await installHost(packages, (manifest) => Object.assign(manifest, { overrides: OVERRIDES }));
  });

  it('has svc-api find those versions, once each', () => {
    const { resolve } = createRequire(join(host.folder, 'node_modules/svc-api/dist/index.js'));
    const locked = Object.entries(
      (
        JSON.parse(readFileSync(join(host.folder, 'package-lock.json'), 'utf8')) as {
          packages: Record<string, { version: string }>;
        }
      ).packages,
    );
    for (const [name, version] of Object.entries(OVERRIDES)) {
      const folder = join('node_modules', name);
      assert.ok(resolve(name).startsWith(join(host.folder, folder)), name);
      assert.deepEqual(
        locked.filter(([path]) => path.endsWith(folder)).map(([path, entry]) => [path, entry.version]),
        [[folder, version]],
      );
    }
  });

  it('serves by them', async () => {
    const coverage = tempFolder();
    const env = cleanEnv({
      XDG_DATA_HOME: join(host.folder, 'home'),
      LOG_LEVEL: 'error',
      NODE_V8_COVERAGE: coverage,
    });
    const server = spawn(process.execPath, [join(host.folder, 'bin/run.js'), 'serve', '--port', '0'], {
      cwd: host.folder,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(server, 'exit');
    const [line] = (await Promise.race([once(server.stdout, 'data'), ended])) as [Buffer];
    assert.match(String(line), /^Listening on /);
    server.kill();
    await ended;
    const loaded = runParts(coverage).filter((url) => url.includes('/node_modules/hono/'));
    const own = pathToFileURL(join(host.folder, 'node_modules/hono/')).href;
    assert.ok(loaded.length > 0);
    for (const url of loaded) assert.ok(url.startsWith(own), url);
  });
});
