import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import type { CatalogAdditions } from '../../keys/permissions/index.ts';
import { listFlags, nameArgs, nameFlag, selectFlags, showsPlan } from '../../cli/input/key-flags.ts';

export default class Delete extends KeyCommand {
  static override group = 'Keys';
  static override aliases = ['apikey:rm'];
  static override summary = 'Delete API keys, and the keys that they created.';
  static override description =
    'Deleted keys stop working immediately. ' +
    'Without a name, filters select the keys: the plan is shown first, and all of them are deleted or none. Without ' +
    'filters, you search and choose keys on the terminal.';
  static override examples = examplesOf([
    ['Delete a key', '--name "CI deploy"'],
    ['Choose from a list', ''],
    ['Delete all keys with a tag', '--tag env=preview --yes'],
  ]);
  static override args = nameArgs;
  static override flags = { name: nameFlag, ...selectFlags(listFlags) };

  protected override get errorFields(): object {
    return { deleted: 0 };
  }

  async run(): Promise<object> {
    const input = await this.parse(Delete);
    const flags = { ...input.flags, name: nameOf(input) };
    if (showsPlan(flags, listFlags)) return this.changeSelected(flags, { what: 'DELETE' }, 'delete');
    return this.delete(flags);
  }

  protected override additions(): Promise<CatalogAdditions> {
    return this.readableAdditions();
  }
}
