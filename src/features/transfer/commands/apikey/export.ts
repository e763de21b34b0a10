import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import * as Flags from '@oclif/core/flags';
import { examplesOf, type FlagsOf } from '../../../../cli/base-command.ts';
import { CliError, shownText } from '../../../../cli/errors.ts';
import { exclusiveFlags } from '../../../../cli/input/key-flags.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { formatCount } from '../../../../cli/output.ts';
import { warn } from '../../../../cli/terminal.ts';
import { printableJson } from '../../../../keys/basics/index.ts';
import type { OpenKeys } from '../../../../service/open-keys.ts';
import { copyTo, isStoreAddress } from '../../../backup/cli/copy-to.ts';

const CHANGED =
  'The original was changed after the copy began, and the copy lacks these changes. To move, stop all servers, and copy again into an empty store.';

export default class Export extends StoreCommand {
  static override group = 'Store';
  static override summary = 'Export all API keys, or copy the whole store.';
  static override description =
    'Each line is a key with the fields that import accepts; a key comes after the key that created it. ' +
    'Keys exported with digests work in the store that imports them. A digest is not enough to authenticate.\n' +
    'If --to is a postgres:// URL, or a path that ends with .sqlite, .sqlite3 or .db, the whole store is copied into ' +
    'that one: the keys with the digests of their secrets, their usage, and the audit log. That store must be empty or ' +
    'not exist yet. The copy is the original as it was when the copy began, and is compared with it before it is ' +
    'committed. A warning says if the original was changed meanwhile. After that, the secrets work with both stores: ' +
    'point the servers to the new one, and take the old one out of use.';
  static override examples = examplesOf([
    ['Write all keys to a file', '--to keys.jsonl'],
    ['Move to PostgreSQL, with the password in PGPASSWORD', '--to postgres://svc@db.internal/keys'],
    ['Make a copy to experiment with', '--to ./copy.sqlite'],
    [
      'Copy all keys to another store, where they work unchanged',
      '<%= config.bin %> <%= command.id %> --with-digests |\n' +
        '<%= config.bin %> apikey<%= config.topicSeparator %>import --database other.sqlite',
    ],
  ]);
  static override flags = {
    to: Flags.string({
      description:
        'File for the JSON lines, with mode 0600, or store to copy into: a postgres:// URL, or a path that ends with ' +
        '.sqlite, .sqlite3 or .db. Default: stdout.',
      helpValue: '<file or URL>',
    }),
    'with-digests': Flags.boolean({ description: 'Also export the SHA-256 of each secret. A copy always has them.' }),
    overwrite: Flags.boolean({ description: 'Replace a file of JSON lines that is there already.' }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Export);
    const { to, overwrite } = flags;
    if (to?.trim() === '') throw new CliError('USAGE', '--to is empty. Pass a path or a URL, or leave it out.');
    if (to === undefined && this.jsonEnabled())
      throw new CliError('USAGE', '--json needs --to. Without it, the output is JSON lines already.');
    if (to === undefined && overwrite) throw new CliError('USAGE', '--overwrite needs --to <file>.');
    if (to !== undefined && isStoreAddress(to)) return this.copy(to, flags);
    if (to !== undefined) return this.exportTo(resolve(to), flags);
    return this.export(flags, async (lines) => {
      for await (const text of lines) await this.terminal.out(text);
    });
  }

  /** Copies the whole store. */
  private async copy(to: string, flags: FlagsOf<typeof Export>): Promise<object> {
    for (const flag of ['overwrite', 'with-digests'] as const)
      if (flags[flag]) throw exclusiveFlags(`--${flag}`, '--to a store');
    this.requireStore(flags);
    const { head: _head, ...copy } = await copyTo(to, flags.database, this.terminal);
    const entries = formatCount(copy.auditEntries, 'entry', 'entries');
    const what = `${formatCount(copy.keys, 'key', 'keys')} and ${entries} of the audit log`;
    this.done = shownText(`Copied ${what} from ${copy.from} to ${copy.to}, and compared them.`);
    const shown = await this.print(copy, this.done);
    if (copy.changedMeanwhile && !this.jsonEnabled()) await warn(this.terminal, [CHANGED]);
    return shown;
  }

  /** Writes the lines to a file, which gets its name once it is whole. */
  private async exportTo(path: string, flags: FlagsOf<typeof Export>): Promise<object> {
    this.requireStore(flags);
    const { BackupFile, requireOther } = await import('../../../backup/backup-file.ts');
    const file = BackupFile.create(path, { overwrite: flags.overwrite ?? false });
    try {
      const { exported } = await this.export(flags, (lines, { location }) => {
        // A PostgreSQL database is no file.
        if (existsSync(location)) requireOther(path, location);
        return file.write(lines);
      });
      file.publish();
      this.done = shownText(`Wrote ${formatCount(exported, 'key', 'keys')} to ${path}.`);
      return await this.print({ exported, file: path }, this.done);
    } finally {
      file.discard();
    }
  }

  /** @param write writes all lines */
  private async export(
    flags: FlagsOf<typeof Export>,
    write: (lines: AsyncIterable<string>, keys: OpenKeys) => Promise<void>,
  ): Promise<{ exported: number }> {
    const withDigests = flags['with-digests'] ?? false;
    const { Transfer } = await import('../../transfer.ts');
    let [exported, rotating] = [0, 0];
    await this.withStore(flags, async (keys) => {
      const lines = async function* () {
        for await (const page of keys.feature(Transfer).export({ withDigests })) {
          exported += page.keys.length;
          rotating += page.rotating;
          yield page.keys.map((key) => `${printableJson(JSON.stringify(key))}\n`).join('');
        }
      };
      await write(lines(), keys);
    });
    if (withDigests && rotating > 0)
      await this.terminal.note(
        `Only the newest secret of a key is exported. Keys whose previous secret is still accepted here: ${rotating}.`,
      );
    return { exported };
  }
}
