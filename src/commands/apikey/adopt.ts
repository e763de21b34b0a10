import { examplesOf } from '../../cli/base-command.ts';
import { CHANGES_MADE } from '../../cli/errors.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import { nameOf, StoreCommand } from '../../cli/manage/key-command.ts';
import { keyJson } from '../../cli/views/key-view.ts';
import { fieldChanges } from '../../keys/key/index.ts';
import { stateOf } from '../../keys/operations/index.ts';
import { OPERATOR } from '../../keys/authorization/index.ts';

export default class Adopt extends StoreCommand {
  static override group = 'Keys';
  static override summary = 'Make an API key independent of the key that created it.';
  static override description =
    'A child key is allowed no more than the key that created it, and is refused and deleted with it. ' +
    'Once adopted, all its grants count. Its secret stays: rotate the key if its creator may know it.';
  static override examples = examplesOf([['Keep a key that a leaked key has created', '"CI deploy"']]);
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<object> {
    const input = await this.parse(Adopt);
    return this.withStore(input.flags, async (keys) => {
      const { id } = await this.findStored(keys, nameOf(input));
      const { before, after } = await keys.adopt(id, OPERATOR);
      const changed = before.createdBy !== null;
      if (changed) this.done = CHANGES_MADE;
      const text = changed ? 'has no creator now, so all its grants count' : 'had no creator already';
      const changes = fieldChanges(before, after);
      return this.printLines(
        { apiKey: keyJson(await stateOf(keys, after)), changes },
        `API key "${after.name}" ${text}`,
      );
    });
  }
}
