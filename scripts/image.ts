import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { bundleWholeProgram } from './bundle-program.ts';
import { licensesOf } from './licenses.ts';
import { sbomOf } from './sbom.ts';

/**
 * Packs what the image of a container has of svc-api, for each Linux machine that it may run on: one file with the
 * program and its packages, and what that reads. `examples/docker/assemble.sh` unpacks it.
 * Usage: `node scripts/image.ts [folder]`, after a build.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const [folder = root] = process.argv.slice(2);
const app = mkdtempSync(join(tmpdir(), 'svc-api-image-'));
try {
  const copied = globSync(
    [
      'bin/stand-in-for-user.cjs',
      'dist/console/console.*',
      'dist/better-sqlite3/{LICENSE,package.json,prebuilds/linux-*}',
      'LICENSE',
      'NOTICE',
      'README.md',
    ],
    { cwd: root },
  );
  for (const path of copied) copy(path, path);
  copy('scripts/image/run.js', 'bin/run.js');
  const manifest = json('dist/oclif.manifest.json');
  const { commands: help } = json('node_modules/@oclif/plugin-help/oclif.manifest.json');
  write('oclif.manifest.json', { ...manifest, commands: { ...(manifest['commands'] as object), ...(help as object) } });
  const { name, version, description, license, engines, imports, oclif } = json('package.json');
  // As in bin/program.cjs.
  const { topics } = oclif as { topics: Record<string, { subtopics: object }> };
  const own = { ...(oclif as object), topics: { ...topics, ...topics['apikey']!.subtopics } };
  write('package.json', { name, version, description, license, engines, imports, oclif: own });
  const bundled = await bundleWholeProgram(root, join(app, 'dist'));
  const parts = [...bundled, 'node_modules/better-sqlite3/package.json'];
  // As Debian has them.
  const compressed = { 'LICENSES.txt.gz': licensesOf(bundled, root), 'sbom.cdx.json.gz': sbomOf(parts, root) };
  for (const [name, text] of Object.entries(compressed))
    writeFileSync(join(app, 'dist', name), gzipSync(text, { level: 9 }));
  const packed = join(folder, `${String(name)}-${String(version)}-image.tgz`);
  execFileSync('tar', ['-czf', packed, '--owner=0', '--group=0', '--sort=name', '-C', app, '.']);
} finally {
  rmSync(app, { recursive: true });
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(join(app, to)), { recursive: true });
  cpSync(join(root, from), join(app, to));
}

function json(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>;
}

function write(path: string, value: object): void {
  writeFileSync(join(app, path), JSON.stringify(value));
}
