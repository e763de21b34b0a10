import * as Flags from '@oclif/core/flags';
import { CliError } from '../../cli/errors.ts';
import { exclusiveFlags, grantFlags, nameArgs, nameFlag, restrictionFlags } from '../../cli/input/key-flags.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { changeText, keyJson } from '../../cli/views/key-view.ts';
import { warn } from '../../cli/terminal.ts';
import { warningsOf } from '../../keys/changes/index.ts';
import { fieldChanges, type KeyChange } from '../../keys/key/index.ts';

const EXCLUSIVE = [
  ['expires-in', 'expires-at', 'no-expiry'],
  ['limit', 'no-limits'],
  ['allow-from', 'no-allow-from'],
];

export default class Update extends KeyCommand {
  static override summary = 'Change an API key: name, description, grants, limits, expiry.';
  static override description =
    'What is left out does not change. The secret stays; to replace it, see rotate or create --overwrite.';
  static override examples = [
    {
      description: 'Reduce what a key may do',
      command: '<%= config.bin %> <%= command.id %> --name "CI deploy" --roles GUEST',
    },
    {
      description: 'Rename a key, and remove its expiry',
      command: '<%= config.bin %> <%= command.id %> --name "CI deploy"\n--rename "CI deploy 2" --no-expiry',
    },
  ];
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    rename: Flags.string({ description: 'New name.', helpValue: '<name>' }),
    description: Flags.string({ description: 'New description; an empty one removes it.', helpValue: '<text>' }),
    ...grantFlags,
    ...restrictionFlags,
    'no-roles': Flags.boolean({ description: 'Remove all roles, but for those of --roles.' }),
    'no-permissions': Flags.boolean({ description: 'Remove all permissions, but for those of --permissions.' }),
    'no-limits': Flags.boolean({ description: 'Remove all limits.' }),
    'no-allow-from': Flags.boolean({ description: 'Let the key be used from anywhere.' }),
    'no-expiry': Flags.boolean({ description: 'Remove the expiry.' }),
  };

  async run(): Promise<object> {
    const input = await this.parse(Update);
    const change = changeOf(input.flags);
    return this.withKeys(input.flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, nameOf(input));
      const { before, after, confusable } = await keys.update(key, change);
      const changes = fieldChanges(before, after.apiKey);
      const text = changes.length > 0 ? changes.map(changeText).join('\n') : 'Nothing has changed.';
      const shown = await this.printLines({ apiKey: keyJson(after), changes }, text);
      await warn(this.terminal, warningsOf(confusable));
      return shown;
    });
  }
}

function changeOf(
  flags: Record<string, unknown> & {
    rename?: string | undefined;
    description?: string | undefined;
    roles?: string[] | undefined;
    permissions?: string[] | undefined;
    limit?: string[] | undefined;
    'allow-from'?: string[] | undefined;
  },
): KeyChange {
  const { rename, description } = flags;
  for (const exclusive of EXCLUSIVE) {
    const given = exclusive.filter((flag) => flags[flag] !== undefined).map((flag) => `--${flag}`);
    if (given.length > 1) throw exclusiveFlags(...given);
  }
  const roles = flags.roles ?? (flags['no-roles'] ? [] : undefined);
  const permissions = flags.permissions ?? (flags['no-permissions'] ? [] : undefined);
  const limits = flags['no-limits'] ? [] : flags.limit;
  const allowFrom = flags['no-allow-from'] ? null : flags['allow-from'];
  const expiresIn = flags['expires-in'] as string | undefined;
  const expiresAt = flags['no-expiry'] ? null : (flags['expires-at'] as string | undefined);
  const change = { name: rename, description, roles, permissions, limits, allowFrom, expiresIn, expiresAt };
  if (Object.values(change).every((value) => value === undefined))
    throw new CliError(
      'USAGE',
      'There is nothing to change. Pass --rename, --description, --roles, --permissions, --limit, --allow-from, ' +
        '--expires-in, --expires-at, --no-roles, --no-permissions, --no-limits, --no-allow-from or --no-expiry.',
    );
  return change;
}
