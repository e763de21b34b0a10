import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { listFlags, nameArgs, nameFlag, selectFlags, selects } from '../../cli/input/key-flags.ts';
import { warn } from '../../cli/terminal.ts';
import { isKeysError } from '../../keys/basics/index.ts';
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
    if (selects(input, listFlags)) return this.changeSelected(input.flags, { what: 'DISABLE' }, 'disable');
    return this.setEnabled(input, false);
  }

  /** The declared grants. If they cannot be read, keys can be disabled all the same. */
  protected override async additions(): Promise<CatalogAdditions> {
    try {
      return await super.additions();
    } catch (error) {
      if (!isKeysError(error) || !/^(CONFIG|SCHEMA)_/.test(error.code)) throw error;
      await warn(this.terminal, [`${error.message}\nKeys are disabled all the same.`]);
      return {};
    }
  }
}
