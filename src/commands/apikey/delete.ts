import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag, noInputFlag, yesFlag } from '../../cli/input/key-flags.ts';

export default class Delete extends KeyCommand {
  static override summary = 'Delete API keys, and the keys that they created.';
  static override description =
    'Deleted keys are refused from the next request on. ' +
    'Without a name, the keys are searched for and chosen on the terminal.';
  static override examples = examplesOf([
    ['Delete a key', '--name "CI deploy"'],
    ['Choose from a list', ''],
  ]);
  static override args = nameArgs;
  static override flags = { name: nameFlag, 'no-input': noInputFlag, yes: yesFlag };

  protected override get errorFields(): object {
    return { deleted: 0 };
  }

  async run(): Promise<object> {
    const input = await this.parse(Delete);
    return this.delete({ ...input.flags, name: nameOf(input) });
  }
}
