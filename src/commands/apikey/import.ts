import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { CliError } from '../../cli/errors.ts';
import { ReportedFailure } from '../../cli/failure.ts';
import { failureOf, reportText, summaryOf } from '../../cli/views/import-report.ts';
import { countedBytes, type Input, openInput } from '../../cli/input/input.ts';
import { withProgress } from '../../cli/progress.ts';
import { StoreCommand } from '../../cli/manage/store-command.ts';
import type { OpenKeys } from '../../open-keys.ts';
import type { ImportReport } from '../../keys/transfer/import.ts';

export default class Import extends StoreCommand {
  static override summary = 'Import API keys from elsewhere: they keep working unchanged.';
  static override description =
    'Each line of the input is a JSON object with a "name", the "secret" or its "sha256" (in hex, base64 or ' +
    'base64url), and "roles", "permissions" or both. "description", "expiresAt", "disabled", "id", "createdAt", ' +
    '"createdBy" and "prefix" are optional. Either all keys are imported or none; what is wrong with a line is ' +
    'reported with its number, without secrets.';
  static override examples = [
    {
      description: 'Check whether a file can be imported, and import nothing',
      command: '<%= config.bin %> <%= command.id %> keys.jsonl --dry-run',
    },
    { description: 'Import a file', command: '<%= config.bin %> <%= command.id %> keys.jsonl' },
    {
      description: 'Copy all keys from one store to another',
      command:
        '<%= config.bin %> apikey<%= config.topicSeparator %>export --with-digests |\n' +
        '<%= config.bin %> <%= command.id %> --database other.sqlite',
    },
  ];
  static override args = {
    // Without `ignoreStdin`, oclif would take what it reads from stdin for the path.
    file: Args.string({ description: 'File with the keys; - or none for stdin.', ignoreStdin: true }),
  };
  static override flags = {
    'dry-run': Flags.boolean({ description: 'Report whether the keys can be imported, and import nothing.' }),
    verbose: Flags.boolean({ description: 'Also report each line that nothing is wrong with.' }),
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Import);
    const input = await openInput(args.file, this.terminal);
    try {
      const report = await this.withStore(
        flags,
        (keys) => this.import(keys, input, flags['dry-run']),
        flags['dry-run'] ? 'empty' : 'create',
      );
      return await this.report(report, flags.verbose);
    } finally {
      await input.close();
    }
  }

  private import(keys: OpenKeys, { bytes, size, isTyped }: Input, dryRun: boolean): Promise<ImportReport> {
    return withProgress(this.terminal, (progress) =>
      keys.importKeys(isTyped ? bytes : countedBytes(bytes, size, progress.of('Reading', 'bytes')), {
        dryRun: dryRun ?? false,
        onProgress: progress.of('Importing', 'keys'),
      }),
    );
  }

  private async report(report: ImportReport, all = false): Promise<object> {
    const failure = failureOf(report);
    const json = { ...(failure && { error: failure.error, code: failure.code }), ...report };
    try {
      await this.print(json, reportText(report, all));
    } catch (error) {
      throw new CliError('OUTPUT_FAILED', `${(error as Error).message} ${failure?.error ?? summaryOf(report)}`, {
        cause: error,
      });
    }
    if (!this.jsonEnabled()) {
      if (failure) await this.noteFailure({ code: failure.code, message: failure.error });
      else await this.terminal.note(summaryOf(report));
    }
    if (failure) throw new ReportedFailure({ ...failure, message: failure.error });
    return json;
  }
}
