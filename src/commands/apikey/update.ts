import { examplesOf } from '../../cli/base-command.ts';
import { CHANGES_MADE, CliError } from '../../cli/errors.ts';
import {
  changeFlags,
  changeOf,
  filtersInChange,
  filtersOfChange,
  nameArgs,
  nameFlag,
  selectFlags,
  selects,
  WHERE,
  withLimitsKept,
} from '../../cli/input/key-flags.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { changeText, keyJson } from '../../cli/views/key-view.ts';
import { warn } from '../../cli/terminal.ts';
import { warningsOf } from '../../keys/changes/index.ts';
import { fieldChanges } from '../../keys/key/index.ts';

export default class Update extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Change API keys: names, owners, grants, limits or expiry.';
  static override description =
    'Values that you leave out do not change. The secret stays; to replace it, see rotate or create --overwrite. Without a ' +
    'name, filters select the keys: the plan is shown first, and all of them are changed or none. Here, the filters of ' +
    `list begin with --${WHERE}: --${WHERE}owner selects keys by their owner, --owner sets it.`;
  static override examples = examplesOf([
    ['Reduce the access of a key', '--name "CI deploy" --roles GUEST'],
    ['Give the keys of a person a new owner', '--where-owner "Ada Lovelace"\n--owner "Payments team" --dry-run'],
    ['Rename a key, and remove its expiry', '--name "CI deploy"\n--rename "CI deploy 2" --no-expiry'],
  ]);
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    ...changeFlags,
    ...selectFlags(filtersOfChange),
  };

  async run(): Promise<object> {
    const input = await this.parse(Update);
    const change = changeOf(input.flags);
    if (selects(input, filtersOfChange)) {
      const { flags } = input;
      // Limits of other units stay, and these differ from key to key.
      if (change.limits && !flags['no-limits'])
        throw new CliError('USAGE', '--rate, --budget and --uses change one key at a time. Pass its name.');
      return this.changeSelected({ ...flags, ...filtersInChange(flags) }, { what: 'UPDATE', change }, 'update');
    }
    const name = nameOf(input);
    if (name === undefined)
      throw new CliError(
        'USAGE',
        `Nothing says which keys to change. Pass the name of one, or filters such as --${WHERE}owner "Ada Lovelace".`,
      );
    return this.withKeys(input.flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, name);
      const changed = { id: key.id, change: withLimitsKept(change, input.flags, key.limits) };
      const { before = key, after, confusable } = await keys.updateApiKey(changed);
      const changes = fieldChanges(before, after.apiKey);
      if (changes.length > 0) this.done = CHANGES_MADE;
      const text = changes.length > 0 ? changes.map(changeText).join('\n') : 'Nothing has changed.';
      const shown = await this.printLines({ apiKey: keyJson(after), changes }, text);
      await warn(this.terminal, warningsOf(confusable));
      return shown;
    });
  }
}
