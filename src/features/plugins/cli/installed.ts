import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Config } from '@oclif/core/interfaces';
import { KeysError, printable, suggestion } from '../../../keys/basics/index.ts';
import { CliError, InterruptedError } from '../../../cli/errors.ts';
import { HeldSignals } from '../../../cli/signals.ts';

/** The time limit of a trial, in milliseconds. */
const TRIAL_MS = 60_000;
/** The lines and characters of a trial's stderr that are shown. */
const [SHOWN_LINES, SHOWN_LENGTH] = [10, 1000];

/** A plugin that the user has installed, in oclif's form. */
interface Installed {
  readonly name: string;
  readonly type: string;
}

interface Manifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly oclif?: { readonly plugins?: readonly (Installed | string)[] };
}

/** The plugins in the user's data folder, from where oclif loads them. */
export class InstalledPlugins {
  readonly #folder: string;
  readonly #signals = new HeldSignals();

  constructor({ dataDir, name, bin }: Config) {
    if (name !== 'svc-api')
      throw new CliError('USAGE', `Plugins of ${bin} cannot be managed here: list them in its package.json.`);
    this.#folder = resolve(dataDir);
  }

  /** The names and versions of all. */
  list(): { name: string; version?: string | undefined; isMissing: boolean }[] {
    return this.#entries().map(({ name }) => {
      const manifest = manifestOf(this.#folder, name);
      return { name, version: manifest?.version, isMissing: manifest === undefined };
    });
  }

  /**
   * Installs a package with the user's npm. Nothing changes if it is not a plugin.
   * @param spec a name with a version, a tarball, a folder, or anything else that npm accepts
   * @returns a warning if the plugin is sound, but another one keeps commands from running
   * @throws KeysError PLUGIN_FAILED; CliError INTERRUPTED
   */
  async install(spec: string): Promise<{ name: string; version?: string | undefined; warning?: string | undefined }> {
    this.#signals.hold();
    try {
      return await this.#install(spec);
    } catch (error) {
      const signal = await this.#signals.first();
      throw signal ? new InterruptedError(signal, 'Install the plugin again.') : error;
    } finally {
      await this.#signals.release();
    }
  }

  async #install(spec: string): ReturnType<InstalledPlugins['install']> {
    const target = targetOf(spec);
    const { name, warning } = await this.#tryOut(target, spec);
    // Checks that the list can be read and written, before a plugin is removed.
    this.#save(this.#entries());
    // npm would keep the installed folder if the version is the same.
    rmSync(join(this.#folder, 'node_modules', name), { recursive: true, force: true });
    await npm(this.#folder, 'install', target, this.#signals);
    const others = this.#entries().filter((each) => each.name !== name);
    this.#save([...others, { name, type: 'user' }]);
    return { name, version: manifestOf(this.#folder, name)?.version, warning };
  }

  /** @throws CliError USAGE if it is not installed; KeysError PLUGIN_FAILED */
  async uninstall(name: string): Promise<void> {
    const entries = this.#entries();
    if (!entries.some((each) => each.name === name)) {
      const names = entries.map((each) => each.name);
      throw new CliError('USAGE', `${printable(name)} is not installed. ${suggestion(name, names)}`.trim());
    }
    await npm(this.#folder, 'uninstall', name, this.#signals);
    this.#save(entries.filter((each) => each.name !== name));
  }

  /**
   * Installs a plugin in a folder of its own, and runs it there beside the others.
   * @returns its name, and the fault of another plugin
   * @throws KeysError PLUGIN_FAILED
   */
  async #tryOut(target: string, spec: string): Promise<{ name: string; warning?: string | undefined }> {
    const folder = mkdtempSync(join(tmpdir(), 'svc-api-plugin-'));
    try {
      const path = join(folder, 'package.json');
      writeFileSync(path, '{}');
      await npm(folder, 'install', target, this.#signals);
      const [name] = Object.keys(readManifest(path)?.dependencies ?? {});
      if (name === undefined)
        throw new KeysError('PLUGIN_FAILED', `npm installed no package for "${printable(spec)}".`);
      if (name === 'svc-api')
        throw new KeysError('PLUGIN_FAILED', 'svc-api is this program, not a plugin. Update it as you installed it.');
      if (!manifestOf(folder, name)?.oclif)
        throw new KeysError(
          'PLUGIN_FAILED',
          `${name} is not a plugin: its package.json has no "oclif". It was not installed.`,
        );
      const others = this.#entries().filter((each) => each.name !== name);
      for (const other of others) {
        const to = join(folder, 'node_modules', other.name);
        mkdirSync(dirname(to), { recursive: true });
        if (!existsSync(to)) symlinkSync(join(this.#folder, 'node_modules', other.name), to, 'junction');
      }
      const faultWith = async (plugins: readonly Installed[]) => {
        writeFileSync(path, JSON.stringify({ oclif: { schema: 1, plugins } }));
        return this.#faultIn(folder, folder, name);
      };
      const own = { name, type: 'user' };
      const warning = await faultWith([...others, own]);
      if (warning === undefined) return { name };
      // Outdated plugins must not keep each other from being updated.
      const isOfOthers = others.length > 0 && (await this.#faultIn(this.#folder, folder, name)) !== undefined;
      const fault = isOfOthers ? await faultWith([own]) : warning;
      if (fault === undefined) return { name, warning };
      const more = fault === warning ? '' : `\nTogether with the other plugins: ${warning}`;
      throw new KeysError('PLUGIN_FAILED', `${name} was not installed. ${fault}${more}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /**
   * Runs this program with the plugins of a data folder, as commands on a new key store do.
   * @param cwd an empty folder
   * @param name the plugin to be installed
   * @returns the reason why commands do not run; undefined if they do
   */
  async #faultIn(dataDir: string, cwd: string, name: string): Promise<string | undefined> {
    const words = 'apikey create --dry-run --json --name Trial --roles GUEST --database'.split(' ');
    const { SVC_API_SERVER: _, SVC_API_CONFIG: __, ...others } = process.env;
    const child = spawn(process.execPath, [process.argv[1]!, ...words, join(cwd, 'none.sqlite')], {
      cwd,
      env: { ...others, SVC_API_DATA_DIR: dataDir },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: TRIAL_MS,
      killSignal: 'SIGKILL',
    });
    const output = Promise.all([text(child.stdout), text(child.stderr)]);
    const [, ended] = await this.#signals.passTo(child);
    const [answer, stderr] = await output;
    const { code, error } = readAnswer(answer);
    if (code !== undefined) return code.startsWith('FEATURE_') ? error : undefined;
    const signal = await this.#signals.first();
    if (signal) throw new InterruptedError(signal, 'The plugin was not installed.');
    const lines = stderr
      .trim()
      .split(/\s*\n\s*/)
      .slice(-SHOWN_LINES);
    const how = ended === 'SIGKILL' ? `do not end within ${TRIAL_MS / 1000} seconds` : 'end without an answer';
    return `With the plugin ${name}, commands ${how}. ${printable(lines.join(' '), SHOWN_LENGTH)}`.trim();
  }

  get #path(): string {
    return join(this.#folder, 'package.json');
  }

  #manifest(): Manifest {
    return readManifest(this.#path) ?? {};
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
    const text = { private: true, ...manifest, oclif: { schema: 1, plugins: [], ...manifest.oclif } };
    const temporary = `${this.#path}.${process.pid}`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(temporary, `${JSON.stringify(text, null, 2)}\n`, { mode: 0o600 });
      renameSync(temporary, this.#path);
    } catch (error) {
      throw unusable(this.#path, 'written', error);
    }
  }
}

/** The target for npm, which runs in another folder. @throws KeysError PLUGIN_FAILED for a path without a file */
function targetOf(spec: string): string {
  const isFile = spec.startsWith('file:');
  const isPath = isFile || isAbsolute(spec) || /^\.|^[^:]*\.(tgz|tar\.gz)$/.test(spec);
  if (!isPath) return spec;
  const path = resolve(isFile ? spec.slice('file:'.length) : spec);
  if (existsSync(path)) return path;
  throw new KeysError('PLUGIN_FAILED', `There is no file or folder ${printable(path)}.`);
}

/** The answer of a command with `--json`. It has no code if the command did not get that far. */
function readAnswer(answer: string): { code?: string; error?: string } {
  try {
    return { code: '', ...(JSON.parse(answer) as object) };
  } catch {
    return {};
  }
}

/** Runs npm in a folder. Its output goes to stderr. */
async function npm(
  folder: string,
  action: 'install' | 'uninstall',
  target: string,
  signals: HeldSignals,
): Promise<void> {
  // Copies folders instead of linking. A plugin can have svc-api as a peer dependency, which is this program.
  const ways = ['--save', '--omit=dev', '--install-links', '--legacy-peer-deps'];
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  // On Windows, `npm` is a shell script; the program itself is beside Node.
  const isWindows = process.platform === 'win32';
  const program = join(dirname(process.execPath), 'node_modules', 'npm', 'bin', 'npm-cli.js');
  const [command, first] = isWindows ? [process.execPath, [program]] : ['npm', []];
  const child = spawn(command, [...first, action, ...ways, ...quiet, '--', target], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  });
  const [code] = await signals.passTo(child).catch((error: unknown) => {
    throw new KeysError('PLUGIN_FAILED', `npm could not be run: ${(error as Error).message}. Install it with Node.`);
  });
  if (code !== 0)
    throw new KeysError('PLUGIN_FAILED', `npm ${action} failed with ${code ?? 'a signal'}; see its output above.`);
}

function manifestOf(folder: string, name: string): Manifest | undefined {
  return readManifest(join(folder, 'node_modules', name, 'package.json'));
}

/** @throws KeysError PLUGIN_FAILED if it exists, but cannot be read */
function readManifest(path: string): Manifest | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  } catch (error) {
    throw unusable(path, 'read', error);
  }
}

function unusable(path: string, done: 'read' | 'written', cause: unknown): KeysError {
  const { message } = cause as Error;
  return new KeysError('PLUGIN_FAILED', `${printable(path)} could not be ${done}: ${message}.`, { cause });
}
