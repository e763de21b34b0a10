import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { SECRET } from '../support/cli.ts';
import { Container, type Image, IMAGE_USER, instructionsOf, shellsIn } from '../support/container.ts';
import { mustRun, packPackage } from '../support/host.ts';
import { freePort } from '../support/port.ts';
import { ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const DOCKERFILE = 'examples/docker/Dockerfile';
const MEGABYTE = 1e6;

describe('examples/docker/Dockerfile', () => {
  const instructions = instructionsOf(DOCKERFILE);
  const last = instructions.slice(instructions.findLastIndex(([name]) => name === 'FROM'));
  const one = (wanted: string) => last.find(([name]) => name === wanted)![1];
  const listOf = (text: string) => JSON.parse(text.slice(text.indexOf('['))) as string[];

  it('pins what it is built by, has only forms without a shell, and a user that is not root', () => {
    const images = instructions.filter(([name]) => name === 'FROM').map(([, rest]) => rest);
    assert.match(images[0]!, /^node:\d+\.\d+\.\d+-bookworm AS build$/);
    assert.deepEqual(images.slice(1), ['scratch']);
    assert.equal(one('USER'), `${IMAGE_USER}:${IMAGE_USER}`);
    for (const name of ['ENTRYPOINT', 'CMD', 'HEALTHCHECK', 'VOLUME']) assert.ok(listOf(one(name)).length > 0, name);
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
      string,
      Record<string, string>
    >;
    const [, version] = /^node:(\S+)-/.exec(images[0]!)!;
    assert.ok(!dependencies!['node'] && devDependencies!['node']!.startsWith(`^${version!.split('.', 1)[0]!}.`));
  });

  it('is given what it copies, and nothing else', () => {
    const ignored = readFileSync(join(ROOT, `${DOCKERFILE}.dockerignore`), 'utf8')
      .trim()
      .split('\n');
    const [, copied] = instructions.find(([name]) => name === 'COPY')!;
    assert.deepEqual(ignored, [
      '*',
      ...copied
        .split(' ')
        .slice(0, -1)
        .map((path) => `!${path}`),
    ]);
  });

  describe('assembled and run, without Docker', () => {
    let image: Image;
    before(async function () {
      needsRoot(this);
      needsPrograms(this, 'unshare', 'nsenter', 'strip', 'ldd');
      const root = join(tempFolder(), 'image');
      const script = join(ROOT, 'examples/docker/assemble.sh');
      const env = { npm_config_prefer_offline: 'true' };
      await mustRun('sh', [script, await packPackage(), join(ROOT, 'package-lock.json'), root], { cwd: ROOT, env });
      mkdirSync(join(root, 'var/lib/svc-api'));
      image = {
        root,
        env: one('ENV').split(' '),
        entrypoint: listOf(one('ENTRYPOINT')),
        command: listOf(one('CMD')),
        health: listOf(one('HEALTHCHECK')),
      };
    });

    it('has the versions of the lockfile, the driver of PostgreSQL, no development dependency and no shell', () => {
      const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
        packages: Record<string, { version: string }>;
      };
      const app = join(image.root, 'opt/svc-api');
      const installed = globSync(['node_modules/*/package.json', 'node_modules/@*/*/package.json'], { cwd: app });
      const names = installed.map((path) => path.slice('node_modules/'.length, -'/package.json'.length));
      assert.ok(names.includes('pg') && !names.includes('mocha') && !names.includes('typescript'), names.join());
      for (const [index, name] of names.entries()) {
        const { version } = JSON.parse(readFileSync(join(app, installed[index]!), 'utf8')) as { version: string };
        assert.equal(version, packages[`node_modules/${name}`]!.version, name);
      }
      assert.deepEqual(shellsIn(image.root), []);
    });

    it('is at most 60 MB packed and 150 MB unpacked', () => {
      const sum = (command: string) => Number(execFileSync('sh', ['-c', command, image.root], { encoding: 'utf8' }));
      const packed = sum('tar -C "$0" -cf - . | gzip -6 | wc -c') / MEGABYTE;
      const unpacked = sum('du -sb "$0" | cut -f 1') / MEGABYTE;
      console.log(`      ${Math.round(packed)} MB packed, ${Math.round(unpacked)} MB unpacked`);
      assert.ok(packed <= 60 && unpacked <= 150, `${packed} ${unpacked}`);
    });

    it('serves as the first process of a user of its own on a read-only file system, and ends at SIGTERM', async () => {
      const port = await freePort();
      const container = new Container(image, port);
      const { child, end } = container.start();
      try {
        const first = await Promise.race([once(child.stdout!, 'data'), end]);
        assert.deepEqual(first, [`Listening on http://[::]:${port}\n`]);
        await until(async () => (await container.run(image.health)).code === 0);
        const create = await container.run([
          ...image.entrypoint,
          ...'apikey create --name CI --roles GUEST'.split(' '),
        ]);
        assert.match(create.stdout.trim(), SECRET, create.stderr);
        const url = `http://127.0.0.1:${port}`;
        const { body } = await query(url, create.stdout.trim(), '{ me { name } }');
        assert.deepEqual(body, { data: { me: { name: 'CI' } } });
        const write = "require('fs').writeFileSync('/etc/mine', '')";
        const written = await container.run(['/bin/node', '-e', write]);
        assert.match(written.stderr, /EROFS|EACCES/);
        const who = await container.run(['/bin/node', '-p', "require('fs').readFileSync('/proc/1/cmdline', 'utf8')"]);
        assert.equal(who.stdout.replaceAll('\0', ' ').trim(), [...image.entrypoint, ...image.command].join(' '));
        const store = statSync(join(container.volume, 'keys.sqlite'));
        assert.deepEqual([store.uid, store.mode & 0o777], [IMAGE_USER, 0o600]);
        container.kill('SIGTERM');
        const { code, stderr } = await end;
        assert.deepEqual([code, stderr.includes('"msg":"stopping"')], [0, true], stderr);
        assert.equal(existsSync(join(container.volume, 'keys.sqlite-wal')), false);
      } finally {
        container.end();
      }
    });

    it('is unhealthy where nothing listens', async () => {
      const container = new Container(
        { ...image, command: ['guard', 'http://127.0.0.1:9', '--any-key', '--port', '0'] },
        9,
      );
      const { child } = container.start();
      try {
        await once(child.stdout!, 'data');
        assert.equal((await container.run(image.health)).code, 1);
      } finally {
        container.end();
      }
    });
  });
});

describe('examples/docker/compose.yaml', () => {
  interface Service {
    volumes?: string[];
    networks: unknown;
    read_only: boolean;
    cap_drop: string[];
    security_opt: string[];
    stop_grace_period?: string;
    ports?: string[];
    environment?: Record<string, string>;
  }
  const { services, volumes } = parse(readFileSync(join(ROOT, 'examples/docker/compose.yaml'), 'utf8')) as {
    services: Record<string, Service>;
    volumes: object;
  };

  it('leaves its services nothing that they do not need', () => {
    assert.deepEqual(Object.keys(services), ['proxy', 'svc-api', 'whoami']);
    for (const [name, { read_only: isReadOnly, cap_drop: dropped, security_opt: options }] of Object.entries(services))
      assert.deepEqual([isReadOnly, dropped, options], [true, ['ALL'], ['no-new-privileges:true']], name);
  });

  it('mounts files that there are, into places that are read', () => {
    for (const { volumes: mounted = [] } of Object.values(services)) {
      for (const mount of mounted) {
        const [from] = mount.split(':', 1) as [string];
        if (from.startsWith('./')) assert.ok(existsSync(join(ROOT, 'examples/docker', from)), from);
        else assert.ok(from in volumes, from);
      }
    }
  });

  it('publishes the proxy alone, and metrics only within the network', () => {
    const { SVC_API_METRICS_PORT: port, SVC_API_METRICS_HOST: host } = services['svc-api']!.environment!;
    assert.deepEqual([port, host], ['9464', '0.0.0.0']);
    assert.deepEqual(
      Object.entries(services).flatMap(([name, { ports = [] }]) => ports.map((published) => [name, published])),
      [['proxy', '127.0.0.1:8080:8080']],
    );
  });

  it('lets requests in flight end', () => {
    assert.equal(services['svc-api']!.stop_grace_period, '15s');
  });
});
