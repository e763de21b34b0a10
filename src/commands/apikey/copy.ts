import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';

export default class Copy extends BaseCommand {
  static override summary = 'Copy the whole key store into another one, such as one on PostgreSQL.';
  static override description = `Keys with the digests of their secrets, their use, and the audit log. The other store must be empty or not be there yet. Nobody can write into either meanwhile, and the copy is compared with the original before it counts. The secrets work with both stores then: point the servers to the new one, and keep the old one from being used.`;
  static override examples = [
    {
      description: 'Move to PostgreSQL; PGPASSWORD has the password',
      command: '<%= config.bin %> <%= command.id %> --to postgres://svc@db.internal/keys',
    },
    { description: 'A copy to try something on', command: '<%= config.bin %> <%= command.id %> --to /tmp/keys.sqlite' },
  ];
  static override flags = {
    to: Flags.string({
      description: 'The other store: a path, or the URL of a PostgreSQL database.',
      helpValue: '<database>',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Copy);
    if (flags.to === undefined)
      throw new CliError('USAGE', 'The store to copy into is missing. Pass --to <path or URL>.');
    const [{ openConnection }, { copyStore }] = await Promise.all([
      import('../../store/open.ts'),
      import('../../store/copy.ts'),
    ]);
    const from = await openConnection({ database: flags.database, mustExist: true });
    try {
      const to = await openConnection({ database: flags.to });
      try {
        if (to.location === from.location)
          throw new CliError('USAGE', `--to is the store itself: ${to.location}. Choose another one.`);
        const copy = await copyStore(from, to);
        const keys = `${copy.keys} ${copy.keys === 1 ? 'key' : 'keys'}`;
        const entries = `${copy.auditEntries} ${copy.auditEntries === 1 ? 'entry' : 'entries'}`;
        this.print(
          copy,
          `Copied ${keys} and ${entries} of the audit log from ${copy.from} to ${copy.to}, and compared them.`,
        );
      } finally {
        await to.close();
      }
    } finally {
      await from.close();
    }
  }
}
