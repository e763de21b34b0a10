import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { formatCount } from '../../../../cli/output.ts';
import { BUSY_TIMEOUT_MS } from '../../../../cli/with-keys.ts';
import { CliError, shownText } from '../../../../cli/errors.ts';
import { withProgress } from '../../../../cli/progress.ts';
import { warn } from '../../../../cli/terminal.ts';

/** How long PostgreSQL may take to make an index of all keys, in milliseconds. */
const STATEMENT_MS = 600_000;
const CHANGED =
  'The original has changed since the copy began, which the copy lacks. To move, stop what changes it, and copy again.';

export default class Copy extends StoreCommand {
  static override group = 'Store';
  static override summary = 'Copy the whole key store into another one, such as a PostgreSQL database.';
  static override description =
    'Copies the keys with the digests of their secrets, their usage, and the audit log. ' +
    'The other store must be empty or not exist yet. What is copied is the original as it was when the copy began: ' +
    'others can change it meanwhile, which a warning says. The copy is compared with it before it is committed. ' +
    'After that, the secrets work with both stores: point the servers to ' +
    'the new one, and take the old one out of use.';
  static override examples = examplesOf([
    ['Move to PostgreSQL, with the password in PGPASSWORD', '--to postgres://svc@db.internal/keys'],
    ['Make a copy to experiment with', '--to ./copy.sqlite'],
  ]);
  static override flags = {
    to: Flags.string({
      description: 'Store to copy into: a path, or the URL of a PostgreSQL database.',
      helpValue: '<database>',
    }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Copy);
    if (flags.to === undefined || flags.to.trim() === '')
      throw new CliError('USAGE', 'The store to copy into is missing. Pass --to <path or URL>.');
    this.requireStore(flags);
    const [{ openConnection }, { copyStore }, { allStores }] = await Promise.all([
      import('../../../../store/open.ts'),
      import('../../copy-store.ts'),
      import('../../../index.ts'),
    ]);
    const how = { busyTimeoutMs: BUSY_TIMEOUT_MS, features: await allStores() };
    const from = await openConnection({ database: flags.database, mustExist: true, ...how });
    try {
      const to = await openConnection({ database: flags.to, statementMs: STATEMENT_MS, ...how });
      try {
        if (to.location === from.location)
          throw new CliError('USAGE', `--to is the store itself: ${to.location}. Choose another one.`);
        const copy = await withProgress(this.terminal, (progress) =>
          copyStore(from, to, {
            onCopied: progress.of('Copying', 'rows'),
            onCompared: progress.of('Comparing', 'rows'),
          }),
        );
        const entries = formatCount(copy.auditEntries, 'entry', 'entries');
        const what = `${formatCount(copy.keys, 'key', 'keys')} and ${entries} of the audit log`;
        const { head: _head, ...json } = copy;
        this.done = shownText(`Copied ${what} from ${copy.from} to ${copy.to}, and compared them.`);
        const shown = await this.print(json, this.done);
        if (copy.changedMeanwhile && !this.jsonEnabled()) await warn(this.terminal, [CHANGED]);
        return shown;
      } finally {
        await to.close();
      }
    } finally {
      await from.close();
    }
  }
}
