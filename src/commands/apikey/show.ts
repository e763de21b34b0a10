import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import { fieldText } from '../../cli/views/key-view.ts';
import { PermissionSet } from '../../keys/permissions/permission-set.ts';

export default class Show extends KeyCommand {
  static override summary = 'Show an API key and all that it may do.';
  static override examples = [
    { description: 'Show a key', command: '<%= config.bin %> apikey show --name "CI deploy"' },
    { description: 'As JSON', command: '<%= config.bin %> apikey show --name "CI deploy" --json' },
  ];
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<void> {
    const input = await this.parse(Show);
    await this.withKeys(input.flags.database, async (keys) => {
      const key = await this.findKey(keys, nameOf(input));
      const json = {
        ...(await this.describe(keys, key)),
        effectivePermissions: PermissionSet.of(keys.catalog, key).permissions(),
      };
      const width = Math.max(...Object.keys(json).map((field) => field.length)) + 2;
      const lines = Object.entries(json).map(([field, value]) => field.padEnd(width) + fieldText(value));
      this.print(json, lines.join('\n'));
    });
  }
}
