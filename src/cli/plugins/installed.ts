import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Config } from '@oclif/core/interfaces';
import { printable, suggestion } from '../../keys/basics/index.ts';
import { CliError } from '../errors.ts';

/** A plugin that the user has installed, as oclif keeps it. */
interface Installed {
  readonly name: string;
  readonly type: string;
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly oclif?: { readonly plugins?: readonly (Installed | string)[] };
}

/** The plugins in the user's data folder, from where oclif loads them. */
export class InstalledPlugins {
  readonly #folder: string;

  constructor({ dataDir, name, bin }: Config) {
    if (name !== 'svc-api')
      throw new CliError('USAGE', `Plugins of ${bin} are its own business: list them in its package.json.`);
    this.#folder = resolve(dataDir);
  }

  /** The names and versions of all. A plugin whose files are gone has no version. */
  list(): { name: string; version?: string | undefined }[] {
    return this.#entries().map(({ name }) => ({ name, version: this.#manifestOf(name)?.version }));
  }

  /**
   * Installs a package by the user's npm.
   * @param spec a name with a version, a tarball, a folder, or whatever else npm takes
   * @throws CliError PLUGIN_FAILED
   */
  async install(spec: string): Promise<{ name: string; version?: string | undefined }> {
    const target = existsSync(spec) ? resolve(spec) : spec;
    if (!existsSync(this.#path)) this.#write({});
    const before = this.#manifest().dependencies ?? {};
    await this.#npm('install', target);
    const after = this.#manifest().dependencies ?? {};
    const isIt = ([name, value]: [string, string]) =>
      before[name] !== value || spec === name || spec.startsWith(`${name}@`) || this.#isAt(value, target);
    const [name] = Object.entries(after).find(isIt) ?? [];
    if (name === undefined)
      throw new CliError('PLUGIN_FAILED', `npm has installed no package for "${printable(spec)}".`);
    const { oclif, version } = this.#manifestOf(name) ?? {};
    if (!oclif) {
      await this.#npm('uninstall', name);
      throw new CliError(
        'PLUGIN_FAILED',
        `${name} is not a plugin: its package.json has no "oclif". It was not installed.`,
      );
    }
    const others = this.#entries().filter((each) => each.name !== name);
    this.#save([...others, { name, type: 'user' }]);
    return { name, version };
  }

  /** @throws CliError USAGE if it is not installed, PLUGIN_FAILED */
  async uninstall(name: string): Promise<void> {
    const entries = this.#entries();
    if (!entries.some((each) => each.name === name)) {
      const names = entries.map((each) => each.name);
      throw new CliError('USAGE', `${printable(name)} is not installed. ${suggestion(name, names)}`.trim());
    }
    this.#save(entries.filter((each) => each.name !== name));
    await this.#npm('uninstall', name);
  }

  get #path(): string {
    return join(this.#folder, 'package.json');
  }

  #isAt(value: string, target: string): boolean {
    return value.startsWith('file:') && resolve(this.#folder, value.slice('file:'.length)) === target;
  }

  #manifest(): Manifest {
    return existsSync(this.#path) ? readManifest(this.#path) : {};
  }

  #manifestOf(name: string): Manifest | undefined {
    const path = join(this.#folder, 'node_modules', name, 'package.json');
    return existsSync(path) ? readManifest(path) : undefined;
  }

  #entries(): Installed[] {
    const { plugins = [] } = this.#manifest().oclif ?? {};
    return plugins.map((each) => (typeof each === 'string' ? { name: each, type: 'user' } : each));
  }

  #save(plugins: readonly Installed[]): void {
    const manifest = this.#manifest();
    this.#write({ ...manifest, oclif: { ...manifest.oclif, plugins } });
  }

  #write(manifest: Manifest): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const text = { private: true, ...manifest, oclif: { schema: 1, plugins: [], ...manifest.oclif } };
    writeFileSync(this.#path, `${JSON.stringify(text, null, 2)}\n`, { mode: 0o600 });
  }

  /** Runs npm in the folder. Its output goes to stderr. */
  async #npm(action: 'install' | 'uninstall', target: string): Promise<void> {
    // Folders are copied. A plugin can name svc-api as a peer, which is this program.
    const ways = ['--save', '--omit=dev', '--install-links', '--legacy-peer-deps'];
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
    // On Windows, npm is a script of a shell; its program stands beside Node.
    const isWindows = process.platform === 'win32';
    const program = join(dirname(process.execPath), 'node_modules', 'npm', 'bin', 'npm-cli.js');
    const [command, first] = isWindows ? [process.execPath, [program]] : ['npm', []];
    const child = spawn(command, [...first, action, ...ways, ...quiet, '--', target], {
      cwd: this.#folder,
      stdio: ['ignore', 2, 2],
    });
    const [code] = (await once(child, 'close').catch((error: unknown) => {
      throw new CliError('PLUGIN_FAILED', `npm could not be run: ${(error as Error).message}. Install it with Node.`);
    })) as [number | null];
    if (code !== 0)
      throw new CliError('PLUGIN_FAILED', `npm ${action} failed with ${code ?? 'a signal'}; it says why above.`);
  }
}

function readManifest(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
}
