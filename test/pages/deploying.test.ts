import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { SECRET, testCli } from '../support/cli.ts';
import { blocksOf, blockWith, runBlock } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

/** Stubs that print their arguments, in place of programs that change this or another machine. */
const STUBS = ['systemctl', 'docker', 'kubectl', 'curl', 'npm']
  .map((name) => `${name}() { echo ${name} "$@"; };`)
  .join(' ');

/** The svc-api command lines in a container, on a page. */
const commandsOn = (page: string) =>
  blocksOf(page).flatMap((block) => Array.from(block.matchAll(/run\.js (apikey .*)$/gm), ([, command]) => command!));

describe('docs/deploying.md', () => {
  it('installs a socket that the package has', async () => {
    const folder = tempFolder();
    const units = join(folder, 'units');
    mkdirSync(units);
    const block = blockWith('enable --now svc-api.socket', 'docs/deploying.md')
      .replace('$(npm root --global)/svc-api', ROOT)
      .replace('/etc/systemd/system/', `${units}/`);
    const { code, stdout, stderr } = await runBlock(`${STUBS}\n${block}`, folder, {});
    assert.equal(code, 0, stderr);
    assert.ok(existsSync(join(units, 'svc-api.socket')));
    assert.match(stdout, /^systemctl daemon-reload\nsystemctl stop svc-api\n/);
  });

  it('says how long a stop may take as units and manifests have it', () => {
    const unit = readFileSync(join(ROOT, 'examples/systemd/svc-api.service'), 'utf8');
    assert.match(unit, /^TimeoutStopSec=15s$/m);
    assert.match(unit, /^Type=notify\nNotifyAccess=all$/m);
  });
});

describe('examples/docker', () => {
  const PAGE = 'examples/docker/README.md';

  it('is built from files that there are', async () => {
    const { stdout, code } = await runBlock(`${STUBS}\n${blockWith('docker build', PAGE)}`, ROOT, {});
    assert.equal(code, 0);
    for (const [, path] of stdout.matchAll(/--file (\S+)/g)) assert.ok(existsSync(join(ROOT, path!)), path);
  });

  it('has commands that make keys, one of them for the guarded service', async () => {
    const cli = testCli();
    const config = join(ROOT, 'examples/docker/svc-api.yaml');
    const commands = commandsOn(PAGE);
    assert.equal(commands.length, 2);
    for (const command of commands) {
      const { stdout, stderr } = await cli.run([...words(command), '--config', config]);
      assert.match(stdout.trim(), SECRET, stderr);
    }
  });

  it('has routes whose expectations hold', async () => {
    const { code, stderr } = await testCli().run([
      'routes',
      'check',
      '--config',
      join(ROOT, 'examples/docker/svc-api.yaml'),
    ]);
    assert.equal(code, 0, stderr);
  });

  it('has the site of examples/caddy, by the names and the address of its services', () => {
    const bodyOf = (path: string) => {
      const text = readFileSync(join(ROOT, 'examples', path), 'utf8');
      return text.slice(text.indexOf('\t# Allow upgrades')).replaceAll(/^\t*#.*\n/gm, '');
    };
    const own = bodyOf('docker/Caddyfile')
      .replaceAll('svc-api:4000', '127.0.0.1:4000')
      .replace('whoami:8000', '127.0.0.1:3000')
      .replace('/auth/caddy?', '/auth/caddy?resource=GRAFANA');
    assert.equal(own, bodyOf('caddy/Caddyfile'));
    const { services } = parse(readFileSync(join(ROOT, 'examples/docker/compose.yaml'), 'utf8')) as {
      services: { proxy: { networks: { inside: { ipv4_address: string } } } };
    };
    const { trust } = parse(readFileSync(join(ROOT, 'examples/docker/svc-api.yaml'), 'utf8')) as { trust: string[] };
    assert.ok(trust.includes(services.proxy.networks.inside.ipv4_address));
  });
});

describe('examples/kubernetes/README.md', () => {
  const PAGE = 'examples/kubernetes/README.md';

  it('makes the Secret that the manifests name, with a key for the audit log', async () => {
    const folder = tempFolder();
    const { stdout, code } = await runBlock(`${STUBS}\n${blocksOf(PAGE)[0]!}`, folder, {});
    assert.equal(code, 0);
    const key = join(folder, 'audit.key');
    assert.deepEqual([statSync(key).mode & 0o777, readFileSync(key, 'utf8').trim().length], [0o600, 64]);
    const made = new Set(Array.from(stdout.matchAll(/--from-\w+=([\w.]+)/g), ([, name]) => name));
    for (const file of ['postgres.yaml', 'sqlite.yaml']) {
      const manifest = readFileSync(join(ROOT, 'examples/kubernetes', file), 'utf8');
      for (const [, name] of manifest.matchAll(/name: svc-api, key: ([\w.]+)/g)) assert.ok(made.has(name), name);
    }
  });

  it('has a command that makes a key', async () => {
    const [command] = commandsOn(PAGE);
    assert.match((await testCli().run(words(command!))).stdout.trim(), SECRET);
  });
});

function words(command: string): string[] {
  return command.split(' ');
}
