import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { pairOf, writePair } from '../support/certificates.ts';
import { ownCommands } from '../support/cli-here.ts';
import { SECRET } from '../support/cli.ts';
import { Container, type Image, IMAGE_USER, instructionsOf, shellsIn } from '../support/container.ts';
import { mustRun } from '../support/host.ts';
import { freePort } from '../support/port.ts';
import { BIN, cleanEnv, finished, ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const DOCKERFILE = 'examples/docker/Dockerfile';
const MEGABYTE = 1e6;

/** Files in the volume, beside the store. */
const FILES = {
  'keys.yaml': 'keys:\n  - name: Declared\n    roles: [GUEST]\n',
  'svc-api.yaml': 'resources: [WIKI]\nroutes:\n  - { host: wiki.example.org, path: /**, allow: WIKI:READ_ANY }\n',
  'keys.jsonl': `${JSON.stringify({ name: 'Imported', sha256: '0'.repeat(64), roles: ['GUEST'] })}\n`,
};
const VOLUME = '/var/lib/svc-api';

/** A command line for each command, with its exit code. */
const COMMANDS: Record<string, number> = {
  plugins: 0,
  'plugins install ./missing.tgz': 1,
  'plugins uninstall missing': 2,
  'apikey --create --name One --roles VIEWER --json': 0,
  'apikey create --name Two --permissions DOCKER:READ_ANY --rate 100/m': 0,
  'apikey list': 0,
  'apikey show One': 0,
  'explain One DOCKER:READ_ANY': 0,
  'apikey suggest One': 0,
  'apikey usage One': 0,
  'apikey update Two --description Other': 0,
  'apikey disable Two': 0,
  'apikey enable Two': 0,
  'apikey rotate One --grace 1h': 0,
  'apikey update One --detach': 0,
  'requests list': 0,
  'requests approve ABCD-EFGH --yes': 1,
  'requests deny ABCD-EFGH': 1,
  [`apikey apply -f ${VOLUME}/keys.yaml --json`]: 0,
  [`apikey import ${VOLUME}/keys.jsonl`]: 0,
  'apikey export': 0,
  'apikey exec --roles GUEST -- /bin/node -e 0': 0,
  [`apikey scan ${VOLUME}/keys.yaml`]: 0,
  'apikey verify -': 2,
  'apikey revoke Two --undo-changes --dry-run': 0,
  'apikey log --verify': 0,
  [`apikey export --to ${VOLUME}/other.sqlite`]: 0,
  'autocomplete bash': 0,
  'apikey list --review --csv': 0,
  'apikey delete --name Two': 0,
  'apikey help': 0,
  'help apikey create': 0,
  'notices test': 1,
  [`backup ${VOLUME}/backup.sqlite`]: 0,
  [`restore ${VOLUME}/backup.sqlite --dry-run`]: 0,
  doctor: 0,
  'doctor --fix': 0,
  'login --server http://127.0.0.1:9 --no-color': 1,
  'logout --server http://127.0.0.1:9 --yes': 0,
  [`routes check --config ${VOLUME}/svc-api.yaml`]: 0,
  'routes template grafana': 0,
  'proxy nginx --resource WIKI --upstream http://127.0.0.1:3000': 0,
  [`routes check --observed --config ${VOLUME}/svc-api.yaml`]: 0,
  [`explain ${VOLUME}/keys.yaml --config ${VOLUME}/svc-api.yaml`]: 1,
  [`explain GET https://wiki.example.org/ --config ${VOLUME}/svc-api.yaml`]: 0,
  '--version': 0,
  'apikey lst': 2,
  // The driver is there; no server listens.
  'apikey list --database postgres://svc@127.0.0.1:9/keys': 1,
};

describe('examples/docker/Dockerfile', () => {
  const instructions = instructionsOf(DOCKERFILE);
  const last = instructions.slice(instructions.findLastIndex(([name]) => name === 'FROM'));
  const one = (wanted: string) => last.find(([name]) => name === wanted)![1];
  const formatList = (text: string) => JSON.parse(text.slice(text.indexOf('['))) as string[];

  it('pins what it is built by, has only forms without a shell, and a user that is not root', () => {
    const images = instructions.filter(([name]) => name === 'FROM').map(([, rest]) => rest);
    assert.match(images[0]!, /^node:\d+\.\d+\.\d+-bookworm AS build$/);
    assert.deepEqual(images.slice(1), ['scratch']);
    assert.equal(one('USER'), `${IMAGE_USER}:${IMAGE_USER}`);
    for (const name of ['ENTRYPOINT', 'CMD', 'HEALTHCHECK', 'VOLUME'])
      assert.ok(formatList(one(name)).length > 0, name);
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
      const folder = tempFolder();
      const root = join(folder, 'image');
      // Like `npm run image` after the build.
      await mustRun('node', ['scripts/image.ts', folder], { cwd: ROOT });
      const [packed] = globSync('svc-api-*-image.tgz', { cwd: folder });
      await mustRun('sh', [join(ROOT, 'examples/docker/assemble.sh'), join(folder, packed!), root], { cwd: ROOT });
      mkdirSync(join(root, 'var/lib/svc-api'));
      image = {
        root,
        env: one('ENV').split(' '),
        entrypoint: formatList(one('ENTRYPOINT')),
        command: formatList(one('CMD')),
        health: formatList(one('HEALTHCHECK')),
      };
    });

    it('has packages in the versions of the lockfile, the drivers, no development dependency and no shell', () => {
      const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
        packages: Record<string, { version: string }>;
      };
      const app = join(image.root, 'opt/svc-api');
      const licenses = readFileSync(join(app, 'dist/LICENSES.txt'), 'utf8');
      const { components } = JSON.parse(readFileSync(join(app, 'dist/sbom.cdx.json'), 'utf8')) as {
        components: { name: string; version: string; purl?: string }[];
      };
      const contained = components.filter(({ purl }) => purl?.startsWith('pkg:npm/'));
      const names = contained.map(({ name }) => name);
      for (const name of [
        'graphql',
        'hono',
        'kysely',
        'pg',
        '@nats-io/jetstream',
        'pino',
        '@oclif/core',
        'better-sqlite3',
      ])
        assert.ok(names.includes(name), `${name}: ${names.join()}`);
      assert.ok(!names.includes('mocha') && !names.includes('typescript'), names.join());
      const locked = new Set(
        Object.entries(packages).map(([path, { version }]) => `${path.split('node_modules/').at(-1)!} ${version}`),
      );
      for (const { name, version } of contained) assert.ok(locked.has(`${name} ${version}`), `${name} ${version}`);
      const files = globSync('**', { cwd: app, withFileTypes: true }).filter((entry) => entry.isFile());
      assert.deepEqual(
        files.map(({ name }) => name).filter((name) => /\.(node|ts|map)$/.test(name)),
        [`${process.platform}-${process.arch}.node`],
      );
      assert.match(licenses, /Permission is hereby granted/);
      assert.deepEqual(shellsIn(image.root), []);
    });

    it('has the licenses of all that is in it', () => {
      for (const [path, text] of [
        ['opt/svc-api/LICENSE', 'Permission is hereby granted'],
        ['opt/svc-api/node_modules/better-sqlite3/LICENSE', 'Permission is hereby granted'],
        ['opt/svc-api/node_modules/hono/LICENSE', 'Permission is hereby granted'],
        ['usr/share/doc/libc6/copyright', 'GNU Lesser General Public'],
        ['usr/share/doc/libstdc++6/copyright', 'GCC Runtime Library Exception'],
        ['usr/share/common-licenses/LGPL-2.1', 'GNU LESSER GENERAL PUBLIC LICENSE'],
        ['usr/share/common-licenses/GPL-3', 'GNU GENERAL PUBLIC LICENSE'],
      ] as const)
        assert.ok(readFileSync(join(image.root, path), 'utf8').replaceAll(/\s+/g, ' ').includes(text), path);
      const ofNode = gunzipSync(readFileSync(join(image.root, 'usr/share/doc/node/LICENSE.gz'))).toString();
      assert.match(ofNode, /^Node\.js is licensed for use as follows/);
    });

    it('is at most 50 MB packed and 135 MB unpacked', () => {
      const sum = (command: string) => Number(execFileSync('sh', ['-c', command, image.root], { encoding: 'utf8' }));
      const packed = sum('tar -C "$0" -cf - . | gzip -6 | wc -c') / MEGABYTE;
      // The sum of file sizes, as Docker counts.
      const unpacked = sum(`find "$0" -type f -printf '%s\\n' | awk '{ all += $1 } END { print all }'`) / MEGABYTE;
      console.log(`      ${packed.toFixed(1)} MB packed, ${unpacked.toFixed(1)} MB unpacked`);
      assert.ok(packed <= 50 && unpacked <= 135, `${packed} ${unpacked}`);
    });

    it('shows help as the package does', async () => {
      const [own] = image.entrypoint.slice(1).map((path) => join(image.root, path));
      for (const args of [
        ['apikey', '--help'],
        ['apikey', 'create', '--help'],
        ['help', 'environment'],
      ]) {
        const [here, there] = await Promise.all(
          [own!, BIN].map((bin) => finished(spawn(process.execPath, [bin, ...args], { env: cleanEnv() }))),
        );
        assert.deepEqual(here, there, args.join(' '));
      }
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

    it('runs every command, beside a server of several processes with all that it can log and measure', async () => {
      const port = await freePort();
      const command = ['serve', '--workers', '2', '--request-log', '--metrics-port', '0'];
      const container = new Container({ ...image, command }, port);
      const { child, end } = container.start();
      try {
        const [first] = (await Promise.race([once(child.stdout!, 'data'), end])) as [Buffer] | [];
        assert.ok(first, 'it ended');
        const write = `for (const [name, text] of ${JSON.stringify(Object.entries(FILES))})
          require('fs').writeFileSync('/var/lib/svc-api/' + name, text)`;
        await container.run(['/bin/node', '-e', write]);
        for (const [command, wanted] of Object.entries(COMMANDS)) {
          const { code, stdout, stderr } = await container.run([...image.entrypoint, ...command.split(' ')]);
          assert.equal(code, wanted, `${command}: ${stdout}${stderr}`);
          assert.doesNotMatch(stderr, /Cannot find|MODULE_NOT_FOUND|INTERNAL|node:internal/, command);
        }
        const token = await container.run([
          ...image.entrypoint,
          'apikey',
          'create',
          '--name',
          'Edge',
          '--roles',
          'GUEST',
        ]);
        const keep = `require('fs').writeFileSync('${VOLUME}/edge.key', '${token.stdout.trim()}', { mode: 0o600 })`;
        await container.run(['/bin/node', '-e', keep]);
        const edge = ['edge', '--origin', `http://127.0.0.1:${port}`, '--token-file', `${VOLUME}/edge.key`];
        const refused = await container.run([...image.entrypoint, ...edge]);
        assert.match(refused.stderr, /An edge needs a key with EDGE:READ_ANY/);
        const commands = await ownCommands();
        const isRun = (id: string) =>
          Object.keys(COMMANDS).some((command) => `${command} `.startsWith(`${id.replaceAll(':', ' ')} `));
        // Other tests run serve here.
        const others = Object.keys(commands).filter((id) => !commands[id]!.hidden && !isRun(id));
        assert.deepEqual(others.toSorted(), ['edge', 'guard', 'serve']);
        const page =
          'fetch(`http://127.0.0.1:${process.env.SVC_API_PORT}/console/sign-in`).then(async (answer) => console.log(answer.status, await answer.text()))';
        const { stdout } = await container.run(['/bin/node', '-e', page]);
        assert.match(stdout, /^200 <!doctype html>.*assets\/console-/s);
        container.kill('SIGTERM');
        assert.equal((await end).code, 0);
      } finally {
        container.end();
      }
    });

    it('is healthy with TLS, too', async () => {
      const tls = ['--tls-cert', `${VOLUME}/cert.pem`, '--tls-key', `${VOLUME}/key.pem`];
      const container = new Container({ ...image, command: ['serve', ...tls] }, await freePort());
      for (const path of Object.values(writePair(pairOf('first'), container.volume)))
        chownSync(path as string, IMAGE_USER, IMAGE_USER);
      const { child, end } = container.start();
      try {
        const [first] = await Promise.race([once(child.stdout!, 'data'), end.then(({ stderr }) => [stderr])]);
        assert.match(String(first), /^Listening on https:/);
        await until(async () => (await container.run(image.health)).code === 0);
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
