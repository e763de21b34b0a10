import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { CliError, type PresentedError, ReportedFailure } from '../../../../cli/errors.ts';
import { exitCodeFor } from '../../../../cli/error-codes.ts';
import { countedBytes, type Input, openInput } from '../../cli/input.ts';
import { jsonTexts, piecesOf } from '../../cli/json-texts.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { withProgress } from '../../../../cli/progress.ts';
import { formatCount } from '../../../../cli/output.ts';
import { fixedFields, identityFields, keyFields, namesOf } from '../../../../keys/key/index.ts';
import type { ImportOutcome, LineReport } from '../../import.ts';
import type { OpenKeys } from '../../../../service/open-keys.ts';

/**
 * The error of a failed import, with the code of the first problem. Invalid values take precedence over conflicts with
 * the store.
 */
function failureOf({ imported, failed, total, codes }: ImportOutcome): PresentedError | undefined {
  const [code] = codes;
  if (code === undefined) return undefined;
  const lines = `${failed} of ${total} ${total === 1 ? 'line' : 'lines'} failed`;
  const message =
    imported === 0
      ? `Nothing was imported: ${lines}.`
      : `Keys changed during the import: ${lines}, after ${formatCount(imported, 'API key was', 'API keys were')} imported.`;
  return { message, code, exit: Math.max(...codes.map(exitCodeFor)) };
}

/** Maximum number of issues and warnings shown. */
const MAX_SHOWN = 100;

/** Problems of lines as text; with `all`, all of them, and a line for each good one. */
function* reportTexts({ lines }: ImportOutcome, all: boolean): Generator<string> {
  let count = 0;
  for (const line of lines())
    for (const text of formatReportLines(line, all)) {
      count += 1;
      if (all || count <= MAX_SHOWN) yield `${text}\n`;
    }
  if (!all && count > MAX_SHOWN) yield `${count - MAX_SHOWN} more are not shown: pass --verbose to see them.\n`;
}

function summaryOf({ imported, unchanged, total }: ImportOutcome, dryRun: boolean): string {
  if (total === 0) return 'The input has no keys.';
  const same = unchanged > 0 ? ` ${formatCount(unchanged, 'key is', 'keys are')} unchanged.` : '';
  if (!dryRun) return `Imported ${formatCount(imported, 'API key', 'API keys')}.${same}`;
  const keys = formatCount(total - unchanged, 'API key', 'API keys');
  return `Nothing was imported: this was a dry run. ${keys} can be imported.${same}`;
}

function formatReportLines({ line, status, name, prefix, errors, warnings }: LineReport, all: boolean): string[] {
  if (status === 'failed') return errors.map(({ code, message }) => `line ${line}: ${code} ${message}`);
  const shown = `line ${line}: ${status} "${name}"${prefix === null ? '' : ` as ${prefix}`}`;
  return [...(all ? [shown] : []), ...warnings.map(({ code, message }) => `line ${line}: ${code} ${message}`)];
}

const FIELDS = namesOf({ ...keyFields, ...fixedFields }).map((name) => `"${name}"`);

const SECRETLESS = namesOf(identityFields)
  .map((name) => `A key without a secret has "${name}" instead. `)
  .join('');

export default class Import extends StoreCommand {
  static override group = 'Store';
  static override namesFields = true;
  static override summary = 'Import API keys from another system, unchanged.';
  static override description =
    'Each line of the input is a JSON object with a "name", the "secret" or its "sha256" (in hex, base64 or ' +
    `base64url), and "roles", "permissions" or both. ${FIELDS.join(', ')}, ` +
    `"expiresAt", "disabled", "id", "createdAt", "createdBy" and "prefix" are optional. ${SECRETLESS}` +
    'All lines are checked first: if one is invalid, nothing is imported. Problems are reported with the number of ' +
    'the line, without secrets. Keys are written a few hundred at a time. If an import is interrupted, run it again: ' +
    'lines whose keys are already in the store are unchanged.';
  static override examples = examplesOf([
    ['Only check whether a file can be imported', 'keys.jsonl --dry-run'],
    ['Import a file', 'keys.jsonl'],
    [
      'Copy all keys from one store to another',
      '<%= config.bin %> apikey<%= config.topicSeparator %>export --with-digests |\n' +
        '<%= config.bin %> <%= command.id %> --database other.sqlite',
    ],
  ]);
  static override args = {
    // Without `ignoreStdin`, oclif would use the contents of stdin as the path.
    file: Args.string({ description: 'File with the keys; - or none for stdin.', ignoreStdin: true }),
  };
  static override flags = {
    'dry-run': Flags.boolean({ description: 'Only report whether the keys can be imported.' }),
    verbose: Flags.boolean({ description: 'Also report each line without problems.' }),
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Import);
    const input = await openInput(args.file, this.terminal);
    try {
      return await this.withStore(
        flags,
        (keys) => this.import(keys, input, { dryRun: flags['dry-run'] ?? false, all: flags.verbose ?? false }),
        flags['dry-run'] ? 'empty' : 'create',
      );
    } finally {
      await input.close();
    }
  }

  private async import(
    keys: OpenKeys,
    { bytes, size, isTyped }: Input,
    { dryRun, all }: { dryRun: boolean; all: boolean },
  ): Promise<object> {
    const { Transfer } = await import('../../transfer.ts');
    return withProgress(this.terminal, (progress) =>
      keys
        .feature(Transfer)
        .import(
          isTyped ? bytes : countedBytes(bytes, size, progress.of('Reading', 'bytes')),
          { dryRun, onProgress: progress.of('Importing', 'keys') },
          (outcome) => this.report(outcome, { dryRun, all }),
        ),
    );
  }

  private async report(outcome: ImportOutcome, { dryRun, all }: { dryRun: boolean; all: boolean }): Promise<object> {
    const failure = failureOf(outcome);
    const { imported, unchanged, failed } = outcome;
    const json = { ...(failure && { error: failure.message, code: failure.code }), imported, unchanged, failed };
    const texts = this.jsonEnabled() ? jsonTexts(json, 'lines', outcome.lines()) : reportTexts(outcome, all);
    try {
      for (const piece of piecesOf(texts)) await this.write(piece);
    } catch (error) {
      throw new CliError(
        'OUTPUT_FAILED',
        `${(error as Error).message} ${failure?.message ?? summaryOf(outcome, dryRun)}`,
        {
          cause: error,
        },
      );
    }
    if (!this.jsonEnabled()) {
      if (failure) await this.noteFailure(failure);
      else await this.terminal.note(summaryOf(outcome, dryRun));
    }
    if (failure) throw new ReportedFailure(failure);
    return json;
  }
}
