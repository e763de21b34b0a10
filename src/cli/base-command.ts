import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import type { CommandConfig } from '../feature.ts';
import { type Log, type LogLevel, logLevelOf, NO_LOG, openLog, type OpenLog } from '../log.ts';
import { unsupportedNode } from '../../bin/node-version.js';
import { requireFeatures } from '../keys/added/index.ts';
import {
  debug,
  errorEntry,
  isDebugged,
  isKeysError,
  KeysError,
  millisecondsSince,
  withoutUndefined,
} from '../keys/basics/index.ts';
import { type CatalogAdditions, ROLES } from '../keys/permissions/index.ts';
import { explainSpacedList } from './explain/did-you-mean.ts';
import { additionsOf, hostDatabase, hostVocabulary, isRunByAnother } from './host.ts';
import { commandText, hasFlag, jsonText, turnColorsOff, withHiddenSecrets } from './output.ts';
import { onIdle } from './idle.ts';
import { loadErrorCodes } from './load-error-codes.ts';
import { CliError, isParserError, ReaderGoneError, ReportedFailure } from './errors.ts';
import type { Failed } from './explain/present.ts';
import { showAddedFlags } from './plugins/added-flags.ts';
import { processTerminal, type Terminal, withoutOutput } from './terminal.ts';

export type FlagsOf<Of extends typeof Command> = Interfaces.InferredFlags<
  (typeof BaseCommand)['baseFlags'] & Of['flags']
>;

// oxlint-disable-next-line typescript/no-explicit-any -- as oclif has it
type Parsed = Record<string, any>;

/** SQLite's name for a store in memory. */
const MEMORY = ':memory:';

/**
 * The examples of a command in its help, each with a description. A line without a program's name continues the command
 * itself.
 */
export function examplesOf(examples: readonly (readonly [description: string, line: string])[]) {
  return examples.map(([description, line]) => {
    const command = line.includes('<%=') ? line : `<%= config.bin %> <%= command.id %> ${line}`.trimEnd();
    return { description, command };
  });
}

/**
 * The base of all commands: `--database`, `--config`, `--json`, results and errors. An error becomes a line on stderr,
 * or one JSON object on stdout, and is then thrown as a `ReportedFailure`, which has the exit code. A command that a
 * host's command runs by `config.runCommand` prints nothing: it returns its JSON result, or throws the failure.
 */
export abstract class BaseCommand extends Command {
  /** Its heading in the help of `apikey`. */
  declare static group?: string;
  /** True if our own program also has it without `apikey`. A host may use that name itself. */
  declare static isAtTop?: boolean;
  /** True if its description names the fields of keys. */
  declare static namesFields?: boolean;
  /** The summary of its topic, if the topic has no command of its own. */
  declare static topic?: string;
  static override enableJsonFlag = true;
  static override baseFlags = {
    database: Flags.string({
      description:
        'Path or postgres:// URL of the key store. Default: SVC_API_DATABASE, the store of the CLI that has svc-api ' +
        "as a plugin, or svc-api/keys.sqlite in the user's data folder.",
      helpGroup: 'GLOBAL',
      helpValue: '<path>',
    }),
    config: Flags.string({
      description:
        'Path of the configuration. ' +
        "Default: SVC_API_CONFIG, or svc-api/svc-api.yaml in the user's configuration folder.",
      helpGroup: 'GLOBAL',
      helpValue: '<path>',
    }),
    'no-color': Flags.boolean({ description: 'Print without colours.', helpGroup: 'GLOBAL' }),
  };

  protected terminal: Terminal = processTerminal;
  protected logger: Log = NO_LOG;
  protected openedLog: OpenLog | undefined;
  /** The default level of the log. At warn, commands log nothing, and the log is not even loaded. */
  protected readonly defaultLevel: LogLevel | undefined = undefined;
  private readonly began = performance.now();
  protected environment: NodeJS.ProcessEnv = process.env;
  /** The exit code of the reported failure, which is thrown to the program that ran this command. */
  protected failedExit: number | undefined;
  /** The path of the configuration that the user named. */
  protected configFile: string | undefined;
  private restoreColors = () => {};
  private endIdle = () => {};
  /** True if a command of the host runs this one for its result, and prints it itself. */
  private isRunForResult = false;
  /** True if the user must see its notes while it runs, even if it is run for its result. */
  protected readonly needsReader: boolean = false;

  /** True to refuse to run if the feature of a plugin is invalid. */
  protected readonly needsFeatures: boolean = true;

  /** The change made so far, as a sentence for errors in writing the output. */
  protected done: string | undefined;

  /** Fields that this command adds to every error object. */
  protected get errorFields(): object {
    return {};
  }

  /** True if missing values can be asked for. */
  protected get interactive(): boolean {
    return this.terminal.canPrompt && !this.jsonEnabled() && !hasFlag(this.argv, '--no-input');
  }

  /** True if confirmations are answered with yes. */
  protected get assumesYes(): boolean {
    return hasFlag(this.argv, '--yes');
  }

  /**
   * Refuses an action that needs confirmation if asking is not possible, unless --yes confirms it.
   * @param what the action, such as `restore`
   * @throws CliError USAGE
   */
  protected requireAnswer(what: string): void {
    if (this.assumesYes || this.interactive) return;
    throw new CliError(
      'USAGE',
      `Pass --yes to ${what}: you can only be asked on a terminal, without --json and --no-input.`,
    );
  }

  /** Shows the action to confirm, and asks whether to continue, unless --yes was given. @throws CliError CANCELLED */
  protected async confirm(question: string, shown?: string): Promise<void> {
    if (this.assumesYes) return;
    if (shown !== undefined) await this.terminal.note(shown);
    const { confirmOrCancel } = await import('./prompts/with-prompts.ts');
    await confirmOrCancel(question);
  }

  /** True for a result that is not printed as well: it has all fields, and there are no questions. */
  override jsonEnabled(): boolean {
    return this.isRunForResult || super.jsonEnabled();
  }

  override async init(): Promise<void> {
    this.isRunForResult = this.ctor.enableJsonFlag && (await isRunByAnother(this.config, this.ctor.id));
    if (this.isRunForResult) this.terminal = withoutOutput(this.terminal, this.needsReader);
    await super.init();
    this.endIdle = onIdle(() => this.failIdle());
    const unsupported = unsupportedNode();
    if (unsupported !== undefined) throw new KeysError('NODE_UNSUPPORTED', `${unsupported}.`);
    if (this.needsFeatures) requireFeatures();
    if (hasFlag(this.argv, '--no-color')) {
      this.environment = { ...process.env };
      this.restoreColors = turnColorsOff(process.env);
    }
    const level = logLevelOf(process.env) ?? this.defaultLevel;
    if (level) this.logger = this.openedLog = await openLog(level);
    if (isDebugged()) await this.debugStart();
  }

  /** Fails if Node has nothing left to do while the command waits. Otherwise, it would exit with 0, without a word. */
  private failIdle(): void {
    const stuck = new KeysError(
      'FEATURE_FAILED',
      'The command did not finish: it waits for something that never happens. If you have plugins, a part of one of ' +
        'them never finished.',
    );
    void this.catch(stuck).catch(() => (process.exitCode = this.failedExit));
  }

  private async debugStart(): Promise<void> {
    const { packageVersion } = await import('../version.ts');
    const variables = Object.keys(process.env).filter((name) => name.startsWith('SVC_API_'));
    debug('the command begins', () => ({
      command: commandText(this.config, this.ctor.id),
      version: packageVersion(),
      node: process.version,
      platform: `${process.platform} ${process.arch}`,
      variables,
    }));
  }

  protected override async finally(failure: Error | undefined): Promise<void> {
    this.endIdle();
    this.restoreColors();
    await super.finally(failure);
    const exit = () => this.failedExit ?? Number(process.exitCode ?? 0);
    debug('the command ended', () => ({ exit: exit(), durationMs: millisecondsSince(this.began) }));
    this.openedLog?.close();
  }

  /** Parses the arguments. Unless another store is given, a host CLI's own store is used, if it has one. */
  protected override async parse<Flags extends Parsed, Base extends Parsed, Args extends Parsed>(
    options?: Interfaces.Input<Flags, Base, Args>,
    argv?: string[],
  ): Promise<Interfaces.ParserOutput<Flags, Base, Args>> {
    const parsed = await super.parse(options, argv);
    const flags = parsed.flags as { database?: string; config?: string; server?: string };
    this.configFile = flags.config;
    this.refuseSpacedList(parsed.args['name'], parsed.flags['name']);
    const takesServer = Object.hasOwn(this.ctor.baseFlags, 'server');
    const isElsewhere = takesServer && (flags.server !== undefined || Boolean(this.environment['SVC_API_SERVER']));
    const isGiven = flags.database !== undefined;
    if (!process.env['SVC_API_DATABASE'] && !isElsewhere) {
      const database = flags.database ?? hostDatabase(this.config);
      if (database !== undefined) flags.database = database;
    }
    const opensStore = !this.ctor.baseFlags['database']?.hidden && !isElsewhere;
    if (opensStore && (flags.database ?? this.environment['SVC_API_DATABASE']) === MEMORY)
      throw new CliError(
        'USAGE',
        `${isGiven ? '--database' : 'SVC_API_DATABASE'} is "${MEMORY}": a store in memory would be lost when the command ends. ` +
          'Pass the path of a file. The library can open one, for tests: openKeys({ database: ":memory:" }).',
      );
    debug('the arguments were read', () => ({
      flags: [...new Set(parsed.raw.flatMap((token) => (token.type === 'flag' ? `--${token.flag}` : [])))],
      args: Object.keys(parsed.args).filter((name) => parsed.args[name] !== undefined),
      storeFrom: placeRule({ isElsewhere, isGiven, isChosen: flags.database !== undefined, server: flags.server }),
    }));
    return parsed;
  }

  /** Refuses `--roles VIEWER GUEST`, where oclif takes GUEST as the name of the key. @throws CliError USAGE */
  private refuseSpacedList(name: unknown, named: unknown): void {
    if (typeof name !== 'string') return;
    const isValue =
      named !== undefined || ROLES.some((role) => role === name.toUpperCase()) || /[^\p{L}\p{M}\p{N} ]/u.test(name);
    const spaced = isValue ? explainSpacedList(this.argv, this.ctor.flags ?? {}, name) : undefined;
    if (spaced !== undefined) throw new CliError('USAGE', spaced);
  }

  /**
   * Reads the configuration.
   * @param onUnmet called with failed expectations, which are then no error
   * @throws KeysError CONFIG_…, SCHEMA_INVALID
   */
  protected async loadConfig(onUnmet?: (text: string) => void): Promise<CommandConfig> {
    const [{ loadConfig }, ofHost] = await Promise.all([
      import('../config/load-config.ts'),
      hostVocabulary(this.config),
    ]);
    const options = { file: this.configFile, ...ofHost, onUnmet };
    return { config: await loadConfig(withoutUndefined(options)), ofHost };
  }

  /** The additions of the host and svc-api.yaml to the catalog: see `additionsOf`. */
  protected additions(permissions?: readonly string[]): Promise<CatalogAdditions> {
    return additionsOf({ config: this.config, file: this.configFile, permissions });
  }

  /** Writes a command's result: the object with `--json`, otherwise the text, if there is one. @returns the object */
  protected async print<Json extends object>(json: Json, text: string | undefined): Promise<Json> {
    const output = this.output(json, text);
    if (output !== undefined) await this.write(output);
    return json;
  }

  /** Like `print`, for sentences: on a terminal, their lines are wrapped between words. */
  protected async printLines<Json extends object>(json: Json, text: string): Promise<Json> {
    const { isTerminal, columns } = this.terminal;
    if (this.jsonEnabled() || !isTerminal) return this.print(json, text);
    const { wrappedLines } = await import('./wrapped.ts');
    return this.print(json, wrappedLines(text, columns));
  }

  /** Writes to stdout. @throws CliError OUTPUT_FAILED */
  protected async write(text: string): Promise<void> {
    try {
      await this.terminal.out(text);
    } catch (error) {
      if (this.done !== undefined && error instanceof CliError) error.message += ` ${this.done}`;
      throw error;
    }
  }

  /**
   * Like `print`, for secrets, which must not get lost.
   * @returns the object, with hidden secrets
   * @throws CliError OUTPUT_FAILED
   */
  protected async deliver<Json extends object>(json: Json, text: string): Promise<Json> {
    await this.terminal.deliver(this.output(json, text)!);
    return withHiddenSecrets(json);
  }

  /** Prints nothing: `print` has printed the result that oclif would print. */
  override logJson(): void {}

  private output(json: object, text: string | undefined): string | undefined {
    if (this.jsonEnabled()) return jsonText(json);
    return text === undefined ? undefined : `${text}\n`;
  }

  override async catch(error: Error & { code?: string }): Promise<void> {
    if (error.code === 'EEXIT') throw error;
    if (error instanceof ReportedFailure) throw this.asReported(error);
    const { presentFailure } = await import('./explain/present.ts');
    if (isKeysError(error) && errorEntry(error.code) === undefined) await loadErrorCodes();
    showAddedFlags(this.config.findCommand(this.ctor.id), this.ctor.flags);
    const { code, message, exit, text } = presentFailure(error, this.failed);
    // An error of oclif's parser contains all arguments.
    this.logger.debug({ err: isParserError(error) ? message : error }, 'the command failed');
    if (code === 'INTERRUPTED') this.terminal.stopWaiting();
    // Without a reader of the output, nothing is printed.
    if (!(error instanceof ReaderGoneError))
      await this.fail({ ...this.errorFields, error: message.replaceAll('\n', ' '), code }, text);
    this.failedExit = this.exitAfter(exit);
    throw this.asReported(new ReportedFailure({ code, message, exit: this.failedExit }));
  }

  /** An unprinted failure is left to the host, and to oclif if the host does not catch it. */
  private asReported(failure: ReportedFailure): ReportedFailure {
    failure.skipOclifErrorHandling = !this.isRunForResult;
    return failure;
  }

  /** The exit code of a failure, for commands that use the usual one differently. */
  protected exitAfter(exit: number): number {
    return exit;
  }

  /** The command, for the text of its failures. */
  protected get failed(): Failed {
    const { config, argv, ctor, terminal } = this;
    return { config, argv, id: ctor.id, columns: terminal.errorColumns };
  }

  /** Reports a failure on stderr, while stdout has the result. */
  protected async noteFailure(failure: { code: string; message: string }): Promise<void> {
    const { failureText } = await import('./explain/present.ts');
    await this.terminal.note(failureText(failure, this.failed));
  }

  /** Reports a failure: the object on stdout with `--json`, even if the command has no such flag, or text on stderr. */
  protected async fail(json: object, text: string): Promise<void> {
    if (!this.jsonEnabled() && !hasFlag(this.argv, '--json')) return this.terminal.note(text);
    try {
      await this.terminal.deliver(jsonText(json));
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      await this.terminal.note(text);
    }
  }
}

/** The source of the choice of the key store or server, for the log. */
function placeRule(known: { isElsewhere: boolean; isGiven: boolean; isChosen: boolean; server: string | undefined }) {
  if (known.server !== undefined) return '--server';
  if (known.isElsewhere) return 'SVC_API_SERVER';
  if (known.isGiven) return '--database';
  if (process.env['SVC_API_DATABASE']) return 'SVC_API_DATABASE';
  return known.isChosen ? "the host's package.json" : "the user's data folder";
}

/** The base flags of a command that neither opens a store nor reads a configuration: they are accepted, but hidden. */
export const FLAGS_WITHOUT_STORE: (typeof BaseCommand)['baseFlags'] = {
  ...BaseCommand.baseFlags,
  database: { ...BaseCommand.baseFlags.database, hidden: true },
  config: { ...BaseCommand.baseFlags.config, hidden: true },
};
