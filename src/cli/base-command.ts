import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import { type Log, logLevelOf, NO_LOG, openLog } from '../log.ts';
import { printableJson } from '../keys/text.ts';
import { CliError, presentError } from './errors.ts';
import { processTerminal, type Terminal } from './terminal.ts';

/** The parsed flags of a command. */
export type FlagsOf<Of extends typeof Command> = Interfaces.InferredFlags<
  (typeof BaseCommand)['baseFlags'] & Of['flags']
>;

/**
 * What every command shares: `--database`, `--json` and error handling. An error becomes a line on stderr, or one JSON
 * object on stdout, and an exit code. It is never rethrown to the host, which may handle it differently.
 */
export abstract class BaseCommand extends Command {
  static override enableJsonFlag = true;
  static override baseFlags = {
    database: Flags.string({
      description:
        'Path or postgres:// URL of the key store. ' +
        "Default: SVC_API_DATABASE, or svc-api/keys.sqlite in the user's data folder.",
      helpGroup: 'GLOBAL',
      helpValue: '<path>',
    }),
  };

  protected terminal: Terminal = processTerminal;
  protected logger: Log = NO_LOG;

  /** Fields that this command adds to every error object. */
  protected get errorFields(): object {
    return {};
  }

  override async init(): Promise<void> {
    await super.init();
    // At the default level, warn, commands log nothing: the logger is loaded only when a level is set.
    const level = logLevelOf(process.env);
    if (level) this.logger = await openLog(level);
  }

  /** Writes a command's result: the object with `--json`, otherwise the text, if any. */
  protected async print(json: object, text: string | undefined): Promise<void> {
    const output = this.output(json, text);
    if (output !== undefined) await this.terminal.out(output);
  }

  /** Like `print`, for output that must not get lost, such as a secret. @throws CliError OUTPUT_FAILED */
  protected async deliver(json: object, text: string): Promise<void> {
    await this.terminal.deliver(this.output(json, text)!);
  }

  private output(json: object, text: string | undefined): string | undefined {
    if (this.jsonEnabled()) return `${printableJson(JSON.stringify(json, null, 2))}\n`;
    return text === undefined ? undefined : `${text}\n`;
  }

  override async catch(error: Error & { code?: string }): Promise<void> {
    if (error.code === 'EEXIT') throw error;
    this.logger.debug({ err: error }, 'the command failed');
    const { code, message, exit } = presentError(error);
    process.exitCode = exit;
    if (code === 'INTERRUPTED') this.terminal.stopWaiting();
    await this.fail(
      { ...this.errorFields, error: message.replaceAll('\n', ' '), code },
      code === 'CANCELLED' ? message : `Error: ${message.replaceAll('\n', '\n       ')}`,
    );
    // Otherwise the host would flush the broken stdout next, and crash with a stack trace.
    if (code === 'OUTPUT_FAILED') process.exit(exit);
  }

  /** Reports a failure: the object on stdout with `--json`, otherwise the text on stderr. */
  protected async fail(json: object, text: string): Promise<void> {
    if (!this.jsonEnabled()) return this.terminal.note(text);
    try {
      await this.deliver(json, '');
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      await this.terminal.note(text);
    }
  }
}
