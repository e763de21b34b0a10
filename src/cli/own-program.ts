import { existsSync, readFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from '@oclif/core/command';
import { Config, Plugin } from '@oclif/core/config';
import { normalizeArgv } from '@oclif/core/help';
import type { LoadOptions } from '@oclif/core/interfaces';
import { run } from '@oclif/core/run';
import { packageFolder } from '../version.ts';
import { topicsOf } from './help/verbs.ts';
import { printVersion } from './help/version.ts';
import { shortId } from './short-id.ts';

/** Options of oclif for a program with a known package. */
type OwnOptions = Extract<LoadOptions, { root: string }>;

const VERSION = new Set(['version', '--version', '-v', '-V']);
const HELP_FLAGS = new Set(['--help', '-h']);

/**
 * Runs `svc-api` itself like oclif's `execute`, with failures in our form. A host runs the same commands by its own
 * oclif.
 */
export async function runOwnProgram(typed: readonly string[]): Promise<void> {
  const args = argsOfHelp(typed);
  const options = await ownOptions();
  let config: Config | undefined;
  try {
    if (VERSION.has(args[0] ?? '') && !args.some((arg) => HELP_FLAGS.has(arg)))
      return await printVersion(options.pjson!.version, args);
    config = await withInstalledPlugins(options);
    await run(args, config);
  } catch (error) {
    const { reportFailure } = await import('./explain/report.ts');
    await reportFailure(error, args, options);
  }
  if (config) await endDespitePlugins(config, args);
}

/**
 * The arguments for oclif. Its help calls --all --nested-commands, and refuses --no-color, although its colours follow
 * that.
 */
function argsOfHelp(typed: readonly string[]): string[] {
  const isAll = typed.includes('--all') && (typed[0] === 'help' || HELP_FLAGS.has(typed[0] ?? ''));
  const args = isAll ? ['help', '--nested-commands', ...typed.slice(1)] : typed;
  if (args[0] !== 'help') return [...args];
  return args.filter((arg) => arg !== '--no-color' && !(isAll && (arg === '--all' || HELP_FLAGS.has(arg))));
}

/** Ends one of our own commands, which a timer or a connection of a plugin would keep running. */
async function endDespitePlugins(config: Config, args: readonly string[]): Promise<void> {
  const [id = ''] = normalizeArgv(config, [...args]);
  const isOfPlugin = config.findCommand(id)?.pluginType === 'user';
  if (isOfPlugin || !config.getPluginsList().some(({ type }) => type === 'user')) return;
  await Promise.all([process.stdout, process.stderr].map(written));
  process.exit();
}

/** Resolves once all is written. A stream without pending data is not touched: its device can be full. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength > 0) await new Promise((resolve) => stream.write('', resolve));
}

/**
 * The configuration with the plugins that the user has installed. oclif loads these only if it is allowed to find all
 * other plugins, too.
 */
async function withInstalledPlugins(options: OwnOptions): Promise<Config> {
  const config = await Config.load(options);
  if (!existsSync(join(config.dataDir, 'package.json'))) return config;
  offerOwnPackage();
  await config.loadPluginsAndCommands({ force: true });
  for (const command of config.commands) if (command.pluginName !== 'svc-api') reportAsOurs(command);
  const problem = problemOfInstalled(config);
  if (problem === undefined) return config;
  const [{ featuresFailed }, { KeysError }] = await Promise.all([
    import('../keys/added/index.ts'),
    import('../keys/basics/index.ts'),
  ]);
  featuresFailed(new KeysError('FEATURE_INVALID', problem));
  return config;
}

/** Why a plugin that the user has installed is not loaded: oclif only warns, and the plugin's rules would not hold. */
function problemOfInstalled({ dataDir, plugins }: Config): string | undefined {
  const read = (...path: string[]) => JSON.parse(readFileSync(join(dataDir, ...path), 'utf8')) as Config['pjson'];
  // Its name in the list is that of its folder, which an alias of npm changes.
  const isLoaded = ({ name }: { name: string }) => {
    try {
      return plugins.has(read('node_modules', name, 'package.json').name);
    } catch {
      return false;
    }
  };
  try {
    const listed = read('package.json').oclif?.plugins as unknown as { name: string }[] | undefined;
    const name = listed?.find((each) => !isLoaded(each))?.name;
    return name === undefined
      ? undefined
      : `Files of the plugin ${name} are missing. Install it again, or uninstall it: svc-api plugins uninstall ${name}`;
  } catch (error) {
    return `${join(dataDir, 'package.json')}, which lists the plugins, could not be read: ${(error as Error).message}`;
  }
}

/** Gives errors of a plugin's command the form of ours with `--json`, unless the plugin has a form of its own. */
function reportAsOurs(command: Command.Loadable): void {
  const load = command.load.bind(command);
  command.load = async () => {
    const [loaded, { presentPluginError }, { loadErrorCodes }] = await Promise.all([
      load(),
      import('./errors.ts'),
      import('./load-error-codes.ts'),
    ]);
    const prototype = loaded.prototype as unknown as Failing;
    if (prototype.toErrorJson !== rootOf(prototype).toErrorJson) return loaded;
    const fail = prototype.catch;
    prototype.catch = async function (error) {
      await loadErrorCodes();
      return fail.call(this, error);
    };
    prototype.toErrorJson = (error) => {
      const { code, message, exit } = presentPluginError(error);
      if (exit !== undefined) process.exitCode = exit;
      return { error: message.replaceAll('\n', ' '), code };
    };
    return loaded;
  };
}

/** Members of a command that are called if it fails. */
interface Failing {
  catch: (error: unknown) => Promise<unknown>;
  toErrorJson: (error: unknown) => object;
}

/** The class of oclif that a command extends. A plugin can bring its own copy of oclif. */
function rootOf(prototype: Failing): Failing {
  const above = Object.getPrototypeOf(prototype) as Failing;
  return above === Object.prototype ? prototype : rootOf(above);
}

/** Lets plugins import svc-api, which is not installed in their folder: they get this program. */
function offerOwnPackage(): void {
  const from = pathToFileURL(join(packageFolder(), 'package.json'));
  const own = createRequire(from);
  registerHooks({
    resolve: (specifier, context, next) =>
      // For `require`, another `parentURL` has no effect. `own.resolve` runs this hook again.
      /^svc-api(\/|$)/.test(specifier) && context.parentURL !== from.href
        ? { url: pathToFileURL(own.resolve(specifier)).href, shortCircuit: true }
        : next(specifier, context),
  });
}

/** Options of oclif for our own program. `help` is added here, since a host would get it from package.json, too. */
export async function ownOptions(): Promise<OwnOptions> {
  const root = packageFolder();
  const pjson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Config['pjson'];
  const own = new Plugin({ root, pjson, isRoot: true });
  const plugins = [own, new Plugin({ name: '@oclif/plugin-help', root, type: 'core' })];
  await Promise.all(plugins.map((plugin) => plugin.load()));
  addShortNames(own);
  const topics = topicsOf(own.commands).map(({ name, description }) => [name, { description }]);
  Object.assign(pjson.oclif, { topics: { ...pjson.oclif.topics, ...Object.fromEntries(topics) } });
  return { root, pjson, plugins: new Map(plugins.map((plugin) => [plugin.name, plugin])) };
}

/** Adds the short names of commands, and hides their long names in help. */
function addShortNames(plugin: Plugin): void {
  const { commands } = plugin.manifest;
  for (const command of plugin.commands.slice()) {
    const id = shortId(command);
    if (id === undefined) continue;
    commands[id] = { ...commands[command.id]!, id };
    plugin.commands.push({ ...command, id, load: async () => plugin.findCommand(id, { must: true }) });
    command.hidden = true;
  }
}
