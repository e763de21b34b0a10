import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { listFlags, nameArgs, nameFlag, selectFlags, showsPlan } from '../../cli/input/key-flags.ts';
import type { CatalogAdditions } from '../../keys/permissions/index.ts';

export default class Disable extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Disable API keys, until they are enabled again.';
  static override description =
    'A disabled key stops working immediately. Without a name, filters select the keys: the plan is shown first, ' +
    'and all of them are disabled or none.';
  static override examples = examplesOf([
    ['Disable a key', '--name "CI deploy"'],
    ['See which keys were not used for 90 days', '--unused-for 90d --dry-run'],
  ]);
  static override args = nameArgs;
  static override flags = { name: nameFlag, ...selectFlags(listFlags) };

  async run(): Promise<object> {
    const input = await this.parse(Disable);
    const flags = { ...input.flags, name: nameOf(input) };
    if (showsPlan(flags, listFlags)) return this.changeSelected(flags, { what: 'DISABLE' }, 'disable');
    return this.setEnabled(input, false);
  }

  protected override additions(): Promise<CatalogAdditions> {
    return this.readableAdditions();
  }
}
