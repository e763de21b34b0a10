import { resolve } from 'node:path';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { contentsJson, contentsText, describeProblem } from '../../cli/backup-view.ts';
import { examplesOf } from '../../../../cli/base-command.ts';
import { CliError, shownText } from '../../../../cli/errors.ts';
import { interruptible } from '../../cli/interruptible.ts';
import { withProgress } from '../../../../cli/progress.ts';
import { warn } from '../../../../cli/terminal.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { BUSY_TIMEOUT_MS } from '../../../../cli/with-keys.ts';

const BROKEN = 1;

export default class Backup extends StoreCommand {
  static override group = 'Store';
  static override isAtTop = true;
  static override summary = 'Write a backup of the key store into a file, and check it.';
  static override description =
    'The backup has the keys with the digests of their secrets, their usage, and the audit log, all as of one ' +
    'moment. ' +
    'It is an SQLite file, even if the store is on PostgreSQL. ' +
    'Servers and commands can use the store meanwhile. ' +
    'The file only gets its name once it is complete and checked. ' +
    'If the audit log of the store is broken, the backup is kept, and the command exits with 1.';
  static override examples = examplesOf([
    ['Make a backup with the date in its name', '"keys-$(date +%F).sqlite"'],
    ['Replace the previous backup', 'keys.sqlite --overwrite'],
  ]);
  static override args = { file: Args.string({ required: true, description: 'Path of the backup.' }) };
  static override flags = { overwrite: Flags.boolean({ description: 'Replace a file that is there already.' }) };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Backup);
    if (!args.file.trim()) throw new CliError('USAGE', 'The path of the backup is empty. Pass one.');
    const path = resolve(args.file);
    this.requireStore(flags);
    const [{ readAuditKey }, { openConnection }, { backUpStore }, { allStores }] = await Promise.all([
      import('../../../../store/audit-log.ts'),
      import('../../../../store/open.ts'),
      import('../../back-up-store.ts'),
      import('../../../index.ts'),
    ]);
    const auditKey = readAuditKey(this.environment);
    const { database } = flags;
    const features = await allStores();
    const from = await openConnection({ database, mustExist: true, busyTimeoutMs: BUSY_TIMEOUT_MS, features });
    try {
      const made = await interruptible('No backup was written.', (stoppable) =>
        withProgress(this.terminal, (progress) =>
          backUpStore(from, path, {
            overwrite: flags.overwrite ?? false,
            auditKey,
            onCopied: stoppable.by(progress.of('Copying', from.dialect === 'sqlite' ? 'bytes' : 'rows')),
            onVerified: stoppable.by(progress.of('Verifying', 'entries')),
          }),
        ),
      );
      const problem = describeProblem(made.log);
      if ('broken' in made.log) process.exitCode = BROKEN;
      const { file, from: store, bytes } = made;
      this.done = shownText(`Wrote ${contentsText(made)} of ${store} to ${file}, and checked them.`);
      const shown = await this.print({ file, from: store, bytes, ...contentsJson(made) }, this.done);
      if (problem !== undefined && !this.jsonEnabled()) await warn(this.terminal, [problem]);
      return shown;
    } finally {
      await from.close();
    }
  }
}
