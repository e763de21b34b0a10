import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import { type Log, logLevelOf, NO_LOG, openLog } from '../log.ts';
import { CliError, presentError } from './errors.ts';
import { processTerminal, type Terminal } from './terminal.ts';

/** The flags that a command's `run` gets. */
export type FlagsOf<Of extends typeof Command> = Interfaces.InferredFlags<
  (typeof BaseCommand)['baseFlags'] & Of['flags']
>;

/**
 * What every command shares: the store's flag, `--json`, and one way for errors. An error becomes a line on stderr, or one
 * JSON object on stdout, and the exit code; nothing is thrown on to the host, whose handling may differ.
 */
export abstract class BaseCommand extends Command {
  static override enableJsonFlag = true;
  static override baseFlags = {
    database: Flags.string({
      description:
        "Path of the key store, or its postgres:// URL. Default: SVC_API_DATABASE, or svc-api/keys.sqlite in the user's data folder.",
      helpGroup: 'GLOBAL',
      helpValue: '<path>',
    }),
  };

  protected terminal: Terminal = processTerminal;
  protected logger: Log = NO_LOG;

  /** Fields that every error object of this command carries. */
  protected get errorFields(): object {
    return {};
  }

  override async init(): Promise<void> {
    await super.init();
    // Commands log nothing at their default level, warn, so the logger is loaded only when it is asked for.
    const level = logLevelOf(process.env);
    if (level) this.logger = await openLog(level);
  }

  /** Writes a command's result: the object with `--json`, otherwise the text, if there is any. */
  protected print(json: object, text: string | undefined): void {
    const output = this.output(json, text);
    if (output !== undefined) this.terminal.out(output);
  }

  /** The same for what somebody must get, such as a secret. @throws CliError OUTPUT_FAILED when nobody can */
  protected deliver(json: object, text: string): void {
    this.terminal.deliver(this.output(json, text)!);
  }

  private output(json: object, text: string | undefined): string | undefined {
    if (this.jsonEnabled()) return `${JSON.stringify(json, null, 2)}\n`;
    return text === undefined ? undefined : `${text}\n`;
  }

  override async catch(error: Error & { code?: string }): Promise<void> {
    if (error.code === 'EEXIT') throw error;
    this.logger.debug({ err: error }, 'the command failed');
    const { code, message, exit } = presentError(error);
    process.exitCode = exit;
    this.fail(
      { ...this.errorFields, error: message.replaceAll('\n', ' '), code },
      code === 'CANCELLED' ? message : `Error: ${message.replaceAll('\n', '\n       ')}`,
    );
    // A host would flush stdout next, and end in a stack trace because stdout is broken.
    if (code === 'OUTPUT_FAILED') process.exit(exit);
  }

  /** Writes a failure where it is looked for: the object to stdout with `--json`, otherwise the text to stderr. */
  protected fail(json: object, text: string): void {
    if (!this.jsonEnabled()) return this.terminal.note(text);
    try {
      this.deliver(json, '');
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      this.terminal.note(text);
    }
  }
}
