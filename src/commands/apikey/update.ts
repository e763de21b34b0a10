import * as Flags from '@oclif/core/flags';
import { examplesOf, type FlagsOf } from '../../cli/base-command.ts';
import { CHANGES_MADE, CliError } from '../../cli/errors.ts';
import {
  changeFlags,
  changeOf,
  exclusiveFlags,
  filtersInChange,
  filtersOfChange,
  nameArgs,
  nameFlag,
  selectFlags,
  showsPlan,
  WHERE,
  withLimitsKept,
} from '../../cli/input/key-flags.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { changeText, keyJson } from '../../cli/views/key-view.ts';
import { warn } from '../../cli/terminal.ts';
import { warningsOf } from '../../keys/changes/index.ts';
import { OPERATOR } from '../../keys/authorization/index.ts';
import { fieldChanges } from '../../keys/key/index.ts';
import { stateOf } from '../../keys/operations/index.ts';

/** The flags of `--detach`, which changes nothing else. */
const ALONE = new Set(['detach', 'name', 'yes', 'no-input']);

export default class Update extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Change API keys: names, owners, grants, limits or expiry.';
  static override description =
    'Values that you leave out do not change. The secret stays; to replace it, see rotate or create --overwrite. ' +
    'Without a name, filters select the keys: the plan is shown first, and all of them are changed or none. Here, the ' +
    `filters of list begin with --${WHERE}: --${WHERE}owner selects keys by their owner, --owner sets it.`;
  static override examples = examplesOf([
    ['Reduce the access of a key', '--name "CI deploy" --roles GUEST'],
    ['Give the keys of a person a new owner', '--where-owner "Ada Lovelace"\n--owner "Payments team" --dry-run'],
    ['Keep a key when the key that created it is deleted', '"CI deploy" --detach'],
    ['Rename a key, and remove its expiry', '--name "CI deploy"\n--rename "CI deploy 2" --no-expiry'],
  ]);
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    ...changeFlags,
    detach: Flags.boolean({
      description:
        'Make the key independent of its parent key, which created it: all its grants count, and it is no longer ' +
        'refused or deleted with that key. Its secret stays: rotate it if the creator could know it. Not with --server.',
    }),
    ...selectFlags(filtersOfChange),
  };

  async run(): Promise<object> {
    const input = await this.parse(Update);
    if (input.flags.detach) return this.detach(input);
    const change = changeOf(input.flags);
    const name = nameOf(input);
    if (showsPlan({ ...input.flags, name }, filtersOfChange)) {
      const { flags } = input;
      if (name !== undefined)
        throw new CliError(
          'USAGE',
          `--dry-run shows which keys filters select. Pass a filter such as --${WHERE}owner.`,
        );
      // Limits of other units stay, and these differ from key to key.
      if (change.limits && !flags['no-limits'])
        throw new CliError('USAGE', '--rate, --budget and --uses change one key at a time. Pass its name.');
      return this.changeSelected({ ...flags, ...filtersInChange(flags) }, { what: 'UPDATE', change }, 'update');
    }
    if (name === undefined)
      throw new CliError(
        'USAGE',
        `Which keys should change? Pass the name of a key, or filters such as --${WHERE}owner "Ada Lovelace".`,
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

  /** Removes the creator of a key. It is a change of its own, with an audit entry of its own. */
  private async detach(input: { args: { name?: string | undefined }; flags: FlagsOf<typeof Update> }): Promise<object> {
    const { flags } = input;
    const given: Readonly<Record<string, unknown>> = flags;
    const other = Object.keys(Update.flags).find((flag) => !ALONE.has(flag) && given[flag] !== undefined);
    if (other !== undefined) throw exclusiveFlags('--detach', `--${other}`);
    return this.withStore(flags, async (keys) => {
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
