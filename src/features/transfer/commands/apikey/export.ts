import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { printableJson } from '../../../../keys/basics/index.ts';

export default class Export extends StoreCommand {
  static override group = 'Store';
  static override enableJsonFlag = false;
  static override summary = 'Export all API keys as JSON lines, without secrets.';
  static override description =
    'Each line is a key with the fields that import accepts; a key comes after the key that created it. ' +
    'Keys exported with digests work in the store that imports them. A digest is not enough to authenticate.';
  static override examples = examplesOf([
    ['Write all keys to a file', '> keys.jsonl'],
    [
      'Copy all keys to another store, where they work unchanged',
      '<%= config.bin %> <%= command.id %> --with-digests |\n' +
        '<%= config.bin %> apikey<%= config.topicSeparator %>import --database other.sqlite',
    ],
  ]);
  static override flags = {
    'with-digests': Flags.boolean({ description: 'Also export the SHA-256 of each secret.' }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Export);
    const withDigests = flags['with-digests'] ?? false;
    const { Transfer } = await import('../../transfer.ts');
    let [exported, rotating] = [0, 0];
    await this.withStore(flags, async (keys) => {
      for await (const page of keys.feature(Transfer).export({ withDigests })) {
        exported += page.keys.length;
        rotating += page.rotating;
        await this.terminal.out(page.keys.map((key) => `${printableJson(JSON.stringify(key))}\n`).join(''));
      }
    });
    if (withDigests && rotating > 0)
      await this.terminal.note(
        `Only the newest secret of a key is exported. Keys whose previous secret is still accepted here: ${rotating}.`,
      );
    return { exported };
  }
}
