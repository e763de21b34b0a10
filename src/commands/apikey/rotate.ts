import * as Flags from '@oclif/core/flags';
import { CliError } from '../../cli/errors.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import { runRotate } from '../../cli/manage/rotate-key.ts';
import type { ApiKey } from '../../keys/key/api-key.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import { DEFAULT_GRACE } from '../../keys/key/rotation.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { formatTime } from '../../keys/time.ts';

export default class Rotate extends KeyCommand {
  static override summary = 'Give an API key a new secret, while the previous one keeps working for a while.';
  static override description = `The new secret is written to stdout, once. Id, name, grants and counts stay. \
The previous secret works until the grace ends. The grace starts now, or when the new secret is first used: \
then a new secret that is lost on its way locks nobody out. \
A key has two secrets at most; --finish and --rollback revoke one of them.`;
  static override examples = [
    {
      description: 'A new secret; the previous one works for a day',
      command: 'KEY=$(<%= config.bin %> apikey rotate "CI deploy")',
    },
    {
      description: 'The previous secret works until 10 minutes after the new one is first used',
      command: '<%= config.bin %> apikey rotate "CI deploy" --activate on-first-use --grace 10m',
    },
    {
      description: 'Revoke the previous secret at once',
      command: '<%= config.bin %> apikey rotate "CI deploy" --finish',
    },
    { description: 'Revoke the new secret', command: '<%= config.bin %> apikey rotate "CI deploy" --rollback' },
  ];
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    grace: Flags.string({
      description: `How long the previous secret keeps working: a number with s, m, h, d or w; 0s for none. \
Default: ${DEFAULT_GRACE}.`,
      helpValue: '90m|12h|7d',
    }),
    activate: Flags.string({
      description: 'When the grace starts: now, or on-first-use of the new secret. Default: now.',
      helpValue: 'now|on-first-use',
    }),
    finish: Flags.boolean({ description: 'Revoke the previous secret at once.' }),
    rollback: Flags.boolean({ description: 'Revoke the new secret at once; the previous one stays.' }),
  };

  async run(): Promise<void> {
    const input = await this.parse(Rotate);
    const { grace, activate, finish, rollback, database } = input.flags;
    const given = Object.entries({ finish, rollback, grace, activate }).filter(([, value]) => value !== undefined);
    if ((finish || rollback) && given.length > 1)
      throw new CliError(
        'USAGE',
        `${given.map(([flag]) => `--${flag}`).join(' and ')} cannot be used together. Pass one of them.`,
      );
    await this.withKeys(database, async (keys) => {
      const { id } = await this.findKey(keys, nameOf(input));
      if (finish)
        return this.finish(
          keys,
          (await keys.finishRotation(id, OPERATOR)).after,
          'The previous secret is refused now.',
        );
      if (rollback)
        return this.finish(keys, (await keys.rollBackRotation(id, OPERATOR)).after, 'The new secret is refused now.');
      const show: Parameters<typeof runRotate>[3] = ({ secret, after }) =>
        this.deliver({ key: secret, name: after.name, id: after.id }, secret);
      this.note(await runRotate(keys, id, { grace, activate }, show));
    });
  }

  private async finish(keys: OpenKeys, key: ApiKey, text: string): Promise<void> {
    this.print(
      { key: await this.describe(keys, key) },
      `API key "${key.name}" has one secret, ${prefixOf(key.publicId)}. ${text}`,
    );
  }

  private note({ name, publicId, rotation }: ApiKey): void {
    const rotated = `Rotated API key "${name}": its new secret is ${prefixOf(publicId)}, and is not shown again.`;
    if (!rotation) return this.terminal.note(rotated);
    const end =
      rotation.previousEndsAt === null
        ? 'until the new one was used and the grace has ended'
        : `until ${formatTime(rotation.previousEndsAt)}`;
    this.terminal.note(`${rotated} The previous one, ${prefixOf(rotation.previousPublicId)}, works ${end}.`);
  }
}
