import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';

export default class Enable extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Enable a disabled API key.';
  static override examples = examplesOf([['Enable a key', '--name "CI deploy"']]);
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<object> {
    return this.setEnabled(await this.parse(Enable), true);
  }
}
