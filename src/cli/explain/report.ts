import { Config } from '@oclif/core/config';
import { handle } from '@oclif/core/handle';
import { normalizeArgv } from '@oclif/core/help';
import type { LoadOptions } from '@oclif/core/interfaces';
import { isKeysError } from '../../keys/basics/index.ts';
import { CliError, isParserError, presentError, ReaderGoneError, shownError, shownText } from '../errors.ts';
import { exitCodeFor } from '../error-codes.ts';
import { hasFlag, jsonText } from '../output.ts';
import { processTerminal } from '../terminal.ts';
import { explainUnknownCommand, type Failed, failureText, presentFailure, type ShownFailure } from './present.ts';

/** The message of oclif for an unknown command, when running it or showing its help. */
const UNKNOWN_COMMAND = /^[cC]ommand (.*?) not found\.?$/s;

/**
 * Reports errors that no command of ours has reported: unknown commands, and failures of oclif's own commands. The form
 * is that of our commands: text on stderr, or with `--json` one object on stdout, and an exit code.
 */
export async function reportFailure(thrown: unknown, args: readonly string[], options: LoadOptions): Promise<void> {
  const error = thrown as Error & { code?: string; skipOclifErrorHandling?: boolean };
  if (error?.code === 'EEXIT' || error?.skipOclifErrorHandling) return handle(error);
  if (error instanceof ReaderGoneError) return void (process.exitCode = error.exit);
  const config = await Config.load(options).catch(() => undefined);
  const isJson = hasFlag(args, '--json') || config?.scopedEnvVar('CONTENT_TYPE')?.toLowerCase() === 'json';
  const isOurs = error instanceof CliError || isKeysError(error);
  if (!isJson && !(config && (isOurs || isParserError(error)))) return handle(shownError(error));
  const { code, message, exit, text } = config ? explain(error, args, config) : { ...presentError(error), text: '' };
  process.exitCode = exit;
  if (!isJson) return processTerminal.note(text);
  await processTerminal
    .deliver(jsonText({ error: message.replaceAll('\n', ' '), code }))
    .catch(() => processTerminal.note(text || message));
}

function explain(error: Error, args: readonly string[], config: Config): ShownFailure {
  const [id = ''] = normalizeArgv(config, [...args]);
  const failed: Failed = { config, id, argv: args, columns: processTerminal.errorColumns };
  const [, unknown] = UNKNOWN_COMMAND.exec(error.message) ?? [];
  if (unknown === undefined) return presentFailure(error, failed);
  const isHelp = args[0] === 'help';
  const { message, id: known, usage } = explainUnknownCommand(unknown, config, isHelp);
  const shown = { code: 'USAGE', message: shownText(message), exit: exitCodeFor('USAGE') };
  return { ...shown, text: failureText(shown, { ...failed, id: known, usage }) };
}
