import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dependenciesOf } from './dependencies-of.ts';
import { sbomWith } from './sbom.ts';

/**
 * Packs the files of svc-api for a container image, for each Linux platform: the package with its dependencies,
 * including those that only some stores and feeds need. `examples/docker/assemble.sh` unpacks them. Usage: `node
 * scripts/image.ts [folder]`, after a build.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const [folder = root] = process.argv.slice(2);
const OWN = [
  'bin/{run,node-version,stand-in-for-user}.js',
  'dist/**/*.js',
  'dist/console/console.*',
  'dist/{LICENSES.txt,sbom.cdx.json}',
  // The configurations that `proxy` and `routes template` print.
  'examples/{caddy,nginx,traefik,haproxy,apache,envoy,routes}/*.{conf,cfg,lua,asis,yml,yaml}',
  'examples/caddy/Caddyfile',
  '{oclif.manifest.json,package.json,LICENSE,NOTICE,README.md}',
];
const ADDED = ['pg', '@nats-io/transport-node', '@nats-io/jetstream'];
/** Files of a package that a program does not read: other platforms, sources, types, maps, tests and pages. */
const UNREAD =
  /\/prebuilds\/(?!linux-)|\/better-sqlite3\/(deps|src)(\/|$)|\.([cm]?ts|map|flow)$|\/node_modules\/.*\/(?!license)[^/]*\.md$|\/(test|tests|docs|node-addon-api)(\/|$)/i;

const app = mkdtempSync(join(tmpdir(), 'svc-api-image-'));
try {
  for (const path of globSync(OWN, { cwd: root })) copy(path);
  const packages = dependenciesOf(root, ADDED);
  for (const path of packages) copy(path);
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, string>;
  const bill = join(app, 'dist/sbom.cdx.json');
  writeFileSync(bill, sbomWith(readFileSync(bill, 'utf8'), packages, root));
  const packed = join(folder, `${name}-${version}-image.tgz`);
  execFileSync('tar', ['-czf', packed, '--owner=0', '--group=0', '--sort=name', '-C', app, '.']);
} finally {
  rmSync(app, { recursive: true });
}

function copy(path: string): void {
  const target = join(app, path);
  mkdirSync(dirname(target), { recursive: true });
  const filter = (file: string) => !UNREAD.test(file.slice(root.length));
  cpSync(join(root, path), target, { recursive: true, filter });
}
