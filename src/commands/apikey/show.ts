import { KeyCommand } from '../../cli/key-command.ts';
import { nameFlag } from '../../cli/key-flags.ts';
import { keyJson, textOf } from '../../cli/key-view.ts';
import { PermissionSet } from '../../keys/permission-set.ts';

export default class Show extends KeyCommand {
  static override summary = 'Show an API key, with all that it may do.';
  static override examples = [
    { description: 'Show a key', command: '<%= config.bin %> apikey show --name "CI deploy"' },
    { description: 'As JSON', command: '<%= config.bin %> apikey show --name "CI deploy" --json' },
  ];
  static override flags = { name: nameFlag };

  async run(): Promise<void> {
    const { flags } = await this.parse(Show);
    await this.withKeys(flags.database, async (keys) => {
      const key = await this.findKey(keys, flags.name);
      const json = { ...keyJson(key, Date.now()), effectivePermissions: PermissionSet.of(keys.catalog, key).grants() };
      const width = Math.max(...Object.keys(json).map((field) => field.length)) + 2;
      const lines = Object.entries(json).map(([field, value]) => field.padEnd(width) + textOf(value));
      this.print(json, lines.join('\n'));
    });
  }
}
