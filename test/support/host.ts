import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { cleanEnv, type Finished, finished, ROOT } from './process.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';

/** Runs a program to its end, with the `node` and `npm` of the tests. */
export function run(
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<Finished> {
  return finished(spawn(command, args, { ...options, env: hostEnv(options.env), stdio: ['ignore', 'pipe', 'pipe'] }));
}

/** The environment for programs outside this checkout, with the `node` and `npm` of the tests. */
export function hostEnv(env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const path = [join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter);
  return cleanEnv({ ...withoutNpm(), PATH: path, ...env });
}

/** Runs a program, and fails if it fails. */
export async function mustRun(
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, options);
  if (code !== 0) {
    throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${printable(`${stdout}\n${stderr}`)}`);
  }
  return stdout;
}

/** The output of a program without host names, because a registry can be private. */
export function printable(output: string): string {
  return output.replaceAll(/(?<=https?:\/\/)(?!127\.0\.0\.1)[^\s/]+/g, '(host)');
}

/** The path of the packed package. */
export function packedFile(): string {
  return process.env['PACKED_FILE']!;
}

/** Packs this package, unless a release has already done so. @returns the path of the tarball */
export async function packPackage(): Promise<string> {
  const { PACKED_FILE: released } = process.env;
  if (released) return released;
  const folder = tempFolder();
  const output = await mustRun('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: ROOT,
  });
  const packed = JSON.parse(output) as { filename: string }[] | Record<string, { filename: string }>;
  return join(folder, Object.values(packed)[0]!.filename);
}

/** Checks the types of a package in its folder, as strictly as possible. */
export const TSC = [
  join(ROOT, 'node_modules/typescript/bin/tsc'),
  ...'--noEmit --strict --exactOptionalPropertyTypes --module nodenext --target es2023 --types node'.split(' '),
  '--typeRoots',
  join(ROOT, 'node_modules/@types'),
];

export interface Host {
  folder: string;
  /** The Node that runs it. */
  node: string;
  cli(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Finished>;
}

/** A modified copy of the example host, with its packages installed. */
export async function installHost(
  packages: Record<string, string>,
  change: (manifest: HostManifest) => void = () => {},
): Promise<Host> {
  const folder = join(tempFolder(), 'acme');
  cpSync(join(ROOT, 'examples/host-cli'), folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as HostManifest;
  Object.assign(manifest.dependencies, packages);
  change(manifest);
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  await install(folder, manifest);
  return hostAt(folder);
}

/** The other packages of hosts, by oclif core release. Several tests share them, so they are installed once. */
export const ON_CORE = {
  5: {
    '@oclif/core': '^5',
    '@oclif/plugin-help': '^7',
    '@oclif/plugin-autocomplete': '^4.0.5',
    '@oclif/test': '^4',
  },
  4: { '@oclif/core': '^4', '@oclif/plugin-help': '^6', '@oclif/plugin-autocomplete': '^3', '@oclif/test': '^4' },
} as const;

/** Installs the packages of a host by copying those of a host with the same dependencies. */
async function install(folder: string, { dependencies, overrides }: HostManifest): Promise<void> {
  const same = await installedOnce({ dependencies, overrides });
  for (const name of ['node_modules', 'package-lock.json'])
    cpSync(join(same, name), join(folder, name), { recursive: true, verbatimSymlinks: true });
}

/** Installs packages once for all tests of the suite. @returns the folder, which is read-only */
export async function installedOnce(manifest: object): Promise<string> {
  const text = JSON.stringify({ private: true, ...manifest });
  const folder = join(process.env['INSTALLED_HOSTS']!, hash('sha256', text));
  const isDone = join(folder, 'done');
  if (mkdirSync(folder, { recursive: true }) !== undefined) {
    writeFileSync(join(folder, 'package.json'), text);
    await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
    });
    writeFileSync(isDone, '');
  } else await until(() => existsSync(isDone));
  return folder;
}

/** Installs packages once for all tests of the suite. @returns the folder, which must not be changed */
export function hostAt(folder: string, node = process.execPath): Host {
  const home = join(folder, 'home');
  mkdirSync(home, { recursive: true });
  return {
    folder,
    node,
    cli: (args, env) =>
      run(node, [join(folder, 'bin/run.js'), ...args], { cwd: folder, env: { XDG_DATA_HOME: home, ...env } }),
  };
}

export interface HostManifest {
  dependencies: Record<string, string>;
  overrides?: Record<string, string>;
  oclif: { plugins: string[]; hooks?: Record<string, string> };
}

/** Starts a host's `serve` on a free port. */
export async function serveHost(host: Host): Promise<{ url: string; stop: () => Promise<void> }> {
  const server = spawn(host.node, [join(host.folder, 'bin/run.js'), 'serve', '--port', '0'], {
    cwd: host.folder,
    env: cleanEnv({ XDG_DATA_HOME: join(host.folder, 'home'), LOG_LEVEL: 'error' }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(server, 'exit');
  const line = String((await Promise.race([once(server.stdout, 'data'), ended]))[0]);
  const [, url] = /^Listening on (http:\S+)\n$/.exec(line) ?? [];
  if (url === undefined) throw new Error(`acme serve did not start: ${line}`);
  return {
    url,
    async stop() {
      server.kill();
      await ended;
    },
  };
}

/** Makes the host one whose users install svc-api with `plugins install`. */
export function withPluginsCommand(manifest: HostManifest): void {
  delete manifest.dependencies['svc-api'];
  manifest.oclif.plugins = ['@oclif/plugin-help', '@oclif/plugin-plugins'];
}

/** Replaces a file of a host while `work` runs. */
export async function withFile<Result>(
  path: string,
  change: (text: string) => string,
  during: () => Promise<Result>,
): Promise<Result> {
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, change(text));
  try {
    return await during();
  } finally {
    writeFileSync(path, text);
  }
}

/** The environment without npm's variables for scripts, which would affect the npm under test. */
function withoutNpm(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.keys(process.env)
      .filter((name) => /^npm_/i.test(name) && name !== 'npm_config_registry')
      .map((name) => [name, undefined]),
  );
}
