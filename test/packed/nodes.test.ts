import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPrograms, NODE_20 } from '../support/bare-machine.ts';
import { type Host, hostAt, installHost, mustRun, ON_CORE, packedFile, serveHost } from '../support/host.ts';
import { ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';

const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };

/** The oldest version in each range of package.json, such as 22.22.2 for `^22.22.2` and 26.0.0 for `>=26`. */
const OLDEST = engines.node.split(' || ').map((range) => {
  const [major, minor = 0, patch = 0] = range.replace(/^\D+/, '').split('.');
  return `${major}.${minor}.${patch}`;
});
const UNSUPPORTED = NODE_20.node;

describe('the packed package', () => {
  let acme: string;
  let nodes: Record<string, string>;
  /** svc-api as a program, and as a plugin of acme. */
  const hosts = (version: string): Host[] =>
    [join(acme, 'node_modules/svc-api'), acme].map((folder) => hostAt(folder, nodes[version]));

  before(async () => {
    ({ folder: acme } = await installHost({ 'svc-api': `file:${packedFile()}`, ...ON_CORE[5] }));
    const installed = [UNSUPPORTED, ...OLDEST].map(async (version) => {
      const programs = version === UNSUPPORTED ? NODE_20 : { node: version };
      return [version, join(await installPrograms(programs), 'node')] as const;
    });
    nodes = Object.fromEntries(await Promise.all(installed));
  });

  for (const version of OLDEST) {
    it(`creates keys and serves them on Node ${version}, alone and as a plugin`, async () => {
      for (const host of hosts(version)) {
        const { stdout, stderr } = await host.cli([
          'apikey',
          'create',
          '--name',
          'Viewer',
          '--roles',
          'VIEWER',
          '--overwrite',
        ]);
        assert.match(stdout, /^svc_\S+\n$/, stderr);
        const { url, stop } = await serveHost(host);
        const { body } = await query(url, stdout.trim(), '{ me { name } info { runtime } }');
        await stop();
        assert.deepEqual(body, { data: { me: { name: 'Viewer' }, info: { runtime: `Node.js v${version}` } } });
      }
    });
  }

  it(`has no command that runs on Node ${UNSUPPORTED} as a plugin, and each says which Node it needs`, async () => {
    const [, plugin] = hosts(UNSUPPORTED);
    const { commands } = JSON.parse(readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8')) as {
      commands: Record<string, { hidden?: boolean }>;
    };
    // Completion commands print nothing in any case.
    const ids = Object.keys(commands).filter((id) => !commands[id]!.hidden);
    // In one process, because each start takes a second.
    const program = `
      import { Config } from '@oclif/core';
      const config = await Config.load(process.cwd());
      const said = {};
      for (const id of ${JSON.stringify(ids)})
        said[id] = await config.runCommand(id, []).then(() => 'it ran', (error) => error.message);
      console.log(JSON.stringify(said));`;
    const printed = await mustRun(plugin!.node, ['--input-type=module', '-e', program], { cwd: plugin!.folder });
    const said = JSON.parse(printed) as Record<string, string>;
    assert.deepEqual(Object.keys(said), ids);
    const wanted = `svc-api needs Node ${engines.node}; this is ${UNSUPPORTED}. Install`;
    for (const id of ids) assert.ok(said[id]!.includes(wanted), `${id}: ${said[id]!}`);
    const { code, stdout } = await plugin!.cli(['apikey', 'list', '--json']);
    assert.deepEqual([code, (JSON.parse(stdout) as { code: string }).code], [1, 'NODE_UNSUPPORTED']);
    assert.equal((await plugin!.cli(['hello'])).code, 0, 'those of the host run');
  });

  it(`refuses Node ${UNSUPPORTED}, alone and as a plugin, and names the Node that it needs`, async () => {
    for (const host of hosts(UNSUPPORTED)) {
      const { code, stdout, stderr } = await host.cli(['apikey', 'create', '--name', 'Old', '--roles', 'GUEST']);
      assert.deepEqual([code, stdout], [1, '']);
      assert.ok(stderr.includes(`svc-api needs Node ${engines.node}; this is ${UNSUPPORTED}.`), stderr);
      assert.doesNotMatch(stderr, /^ +at /m);
    }
  });
});
