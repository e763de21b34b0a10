import { examplesOf } from '../../../../cli/base-command.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { formatCount } from '../../../../cli/output.ts';
import { withKeys } from '../../../../cli/with-keys.ts';

export default class Compact extends StoreCommand {
  static override group = 'Store';
  static override isAtTop = true;
  static override summary = 'Return the free space of the key store to the system.';
  static override description =
    'What deleted keys and pruned entries of the audit log leave is used again, and stays in the file until then. ' +
    'This gives it back to the file system, in pieces: servers and commands may use the store meanwhile. Of a ' +
    'PostgreSQL database, it vacuums the tables. Servers do so by themselves where a quarter of the file is free.';
  static override examples = examplesOf([
    ['Make the file smaller', ''],
    ['For a program', '--json'],
  ]);

  async run(): Promise<object> {
    const { flags } = await this.parse(Compact);
    this.requireStore(flags);
    const { freedBytes, store } = await withKeys({ ...flags, ifMissing: 'fail' }, async (keys) => {
      const compacting = keys.compact();
      let step = await compacting.next();
      while (!step.done) step = await compacting.next();
      return { freedBytes: step.value, store: keys.location };
    });
    this.done =
      freedBytes === null
        ? `Vacuumed the tables of ${store}.`
        : `Gave ${formatCount(freedBytes, 'byte', 'bytes')} of ${store} back.`;
    return this.print({ store, freedBytes }, this.done);
  }
}
