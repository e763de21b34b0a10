import { Flags } from '@oclif/core';
import { CliError } from '../../cli/errors.ts';
import { KeyCommand } from '../../cli/key-command.ts';
import { grantFlags, nameFlag } from '../../cli/key-flags.ts';
import { changesOf, keyJson, textOfChange } from '../../cli/key-view.ts';
import type { KeyChange } from '../../keys/api-key.ts';
import { OPERATOR } from '../../keys/principal.ts';

export default class Update extends KeyCommand {
  static override summary = 'Change the name, description, grants or end of an API key.';
  static override description = 'What is left out stays. The secret stays, too; to replace it, see rotate or create --overwrite.';
  static override examples = [
    { description: 'Let a key do less', command: '<%= config.bin %> apikey update --name "CI deploy" --roles GUEST' },
    {
      description: 'Rename it, and take its end away',
      command: '<%= config.bin %> apikey update --name "CI deploy" --rename "CI deploy 2" --no-expiry',
    },
  ];
  static override flags = {
    name: nameFlag,
    rename: Flags.string({ description: 'The new name.', helpValue: '<name>' }),
    description: Flags.string({ description: 'The new description; an empty one takes it away.', helpValue: '<text>' }),
    ...grantFlags,
    'no-expiry': Flags.boolean({ description: 'Take the end away.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Update);
    const change = changeOf(flags);
    await this.withKeys(flags.database, async (keys) => {
      const key = await this.findKey(keys, flags.name);
      const { before, after } = await keys.update(key.id, change, OPERATOR);
      const changes = changesOf(before, after);
      const text = changes.length > 0 ? changes.map(textOfChange).join('\n') : 'Nothing has changed.';
      this.print({ key: keyJson(after, Date.now()), changes }, text);
    });
  }
}

function changeOf(
  flags: Record<string, unknown> & {
    rename?: string | undefined;
    description?: string | undefined;
    roles?: string[] | undefined;
    permissions?: string[] | undefined;
  },
): KeyChange {
  const { rename, description, roles, permissions } = flags;
  const ends = ['expires-in', 'expires-at', 'no-expiry'].filter((flag) => flags[flag] !== undefined);
  if (ends.length > 1)
    throw new CliError('USAGE', `${ends.map((flag) => `--${flag}`).join(' and ')} exclude each other. Pass one of them.`);
  const expiresIn = flags['expires-in'] as string | undefined;
  const expiresAt = flags['no-expiry'] ? null : (flags['expires-at'] as string | undefined);
  const change = { name: rename, description, roles, permissions, expiresIn, expiresAt };
  if (Object.values(change).every((value) => value === undefined))
    throw new CliError(
      'USAGE',
      'Nothing to change is given. Pass --rename, --description, --roles, --permissions, --expires-in, --expires-at or --no-expiry.',
    );
  return change;
}
