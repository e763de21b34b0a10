import { KeyCommand } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';

export default class Disable extends KeyCommand {
  static override summary = 'Disable an API key, until it is enabled again.';
  static override description = 'It is refused from the next request on.';
  static override examples = [
    { description: 'Disable a key', command: '<%= config.bin %> <%= command.id %> --name "CI deploy"' },
  ];
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<void> {
    await this.setEnabled(await this.parse(Disable), false);
  }
}
