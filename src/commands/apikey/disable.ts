import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import { warn } from '../../cli/terminal.ts';
import { isKeysError } from '../../keys/basics/index.ts';
import type { CatalogAdditions } from '../../keys/permissions/index.ts';

export default class Disable extends KeyCommand {
  static override summary = 'Disable an API key, until it is enabled again.';
  static override description = 'A disabled key is refused from the next request on.';
  static override examples = examplesOf([['Disable a key', '--name "CI deploy"']]);
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<object> {
    return this.setEnabled(await this.parse(Disable), false);
  }

  /** What can be granted: where that can't be told, a key must be disabled all the same. */
  protected override async additions(): Promise<CatalogAdditions> {
    try {
      return await super.additions();
    } catch (error) {
      if (!isKeysError(error) || !/^(CONFIG|SCHEMA)_/.test(error.code)) throw error;
      await warn(this.terminal, [`${error.message}\nThis keeps no key from being disabled.`]);
      return {};
    }
  }
}
