import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../cli/base-command.ts';
import { deliverSecrets } from '../../cli/deliver-secrets.ts';
import { CHANGES_MADE, CliError } from '../../cli/errors.ts';
import { exclusiveFlags, nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { firstOf } from '../../cli/output.ts';
import { issuedJson, keyJson } from '../../cli/views/key-view.ts';
import type { KeyState, Rotated } from '../../keys/service/index.ts';
import { DEFAULT_GRACE, type KeyFields } from '../../keys/key/index.ts';
import { formatList, timeAndDistance } from '../../keys/basics/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';

const REVERTED = 'The new secret could not be delivered, so the rotation was undone.';
const MAX_NAMES = 10;

export default class Rotate extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Replace the secret of an API key, without downtime.';
  static override description = `The new secret is written to stdout, once. The key keeps its id, name, grants and counts. \
The previous secret works until the grace period ends. By default, that period starts now. With --activate on-first-use, \
it starts when the new secret is first used, so that nothing breaks if the new secret gets lost. \
A key has two secrets at most; --finish and --rollback revoke one of them.`;
  static override examples = examplesOf([
    ['A new secret; the previous one works for a day', 'KEY=$(<%= config.bin %> <%= command.id %> "CI deploy")'],
    ['Revoke the previous secret at once', '"CI deploy" --finish'],
    [
      'The previous secret works until 10 minutes after the new one is first used',
      '"CI deploy" --activate on-first-use --grace 10m',
    ],
    ['Revoke the new secret', '"CI deploy" --rollback'],
  ]);
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    grace: Flags.string({
      description: `How long the previous secret keeps working: a number with s, m, h, d or w; 0s for none; \
at most 90 days. Default: ${DEFAULT_GRACE}.`,
      helpValue: '90m|12h|7d',
    }),
    activate: Flags.string({
      description: 'When the grace period starts: now, or on-first-use of the new secret. Default: now.',
      helpValue: 'now|on-first-use',
    }),
    finish: Flags.boolean({ description: 'Revoke the previous secret at once.' }),
    rollback: Flags.boolean({ description: 'Revoke the new secret at once; the previous one stays.' }),
    'disable-created': Flags.boolean({
      description:
        "Disable the keys that this key has created: after a leak, they may be the thief's. Pass --grace 0s as well.",
    }),
    since: Flags.string({
      description:
        'With --disable-created: only keys created from this time on: a date (from 00:00 UTC), an RFC 3339 date ' +
        'and time, or how long ago.',
      helpValue: '<date>|24h',
    }),
  };

  async run(): Promise<object> {
    const input = await this.parse(Rotate);
    const { grace, activate, finish, rollback, since, 'disable-created': disableCreated } = input.flags;
    const flags = { finish, rollback, grace, activate, 'disable-created': disableCreated, since };
    const given = Object.entries(flags).filter(([, value]) => value !== undefined);
    if (since !== undefined && !disableCreated)
      throw new CliError('USAGE', '--since needs --disable-created. Pass both, or leave it out.');
    if ((finish || rollback) && given.length > 1) throw exclusiveFlags(...given.map(([flag]) => `--${flag}`));
    return this.withKeys(input.flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, nameOf(input));
      if (finish)
        return this.finish(await keys.finishApiKeyRotation({ id: key.id }), 'The previous secret is refused now.');
      if (rollback)
        return this.finish(await keys.rollBackApiKeyRotation({ id: key.id }), 'The new secret is refused now.');
      let shown: object = {};
      const deliver = async ({ key, apiKey: { name, id }, issued }: Rotated) => {
        shown = await this.deliver({ key, name, id, ...issuedJson(issued) }, key);
      };
      const request = { grace, activate, disableCreated, createdSince: since };
      const rotated = await deliverSecrets({ deliver }, REVERTED, (delivery) =>
        keys.rotateApiKey({ id: key.id, request, delivery }),
      );
      await this.note(rotated, disableCreated);
      await this.warnOfIssued(rotated.issued, key);
      return shown;
    });
  }

  private async finish(state: KeyState, text: string): Promise<object> {
    this.done = CHANGES_MADE;
    const { name, publicId } = state.apiKey;
    return this.printLines(
      { apiKey: keyJson(state) },
      `API key "${name}" has one secret, ${prefixOf(publicId)}. ${text}`,
    );
  }

  private async note({ apiKey: key, rotation, created, disabled }: Rotated, areDisabled = false): Promise<void> {
    const { name, publicId, expiresAt } = key;
    if (created.length > 0) await this.terminal.note(createdText(created, disabled, areDisabled));
    const expiry = expiresAt === null ? '' : ` The key expires ${timeAndDistance(expiresAt)}.`;
    const secret = `its new secret is ${prefixOf(publicId)}, and is not shown again.`;
    const rotated = `Rotated API key "${name}": ${secret}${expiry}`;
    if (!rotation) return this.terminal.note(rotated);
    const { previousEndsAt, startedAt } = rotation;
    const end =
      previousEndsAt === null
        ? 'works until the new one is used and the grace period has ended'
        : previousEndsAt <= startedAt
          ? 'is refused now'
          : `works until ${timeAndDistance(previousEndsAt, startedAt)}`;
    await this.terminal.note(`${rotated} The previous one, ${prefixOf(rotation.previousPublicId)}, ${end}.`);
  }
}

function createdText(created: readonly KeyFields[], disabled: readonly KeyFields[], areDisabled: boolean): string {
  const namesOf = (keys: readonly KeyFields[]) => {
    const names = keys.map(({ name }) => `"${name}"`);
    return formatList(firstOf(names, MAX_NAMES));
  };
  const off = new Set(disabled.map(({ id }) => id));
  const others = created.filter(({ id, disabledAt }) => !off.has(id) && disabledAt === null);
  const texts = disabled.length > 0 ? [`Its child keys are disabled now: ${namesOf(disabled)}.`] : [];
  if (others.length > 0 && areDisabled)
    texts.push(`It had created ${namesOf(others)} before --since: they are not disabled.`);
  else if (others.length > 0)
    texts.push(
      `It has created ${namesOf(others)}. After a leak, disable them: --disable-created does it with the rotation.`,
    );
  return texts.join(' ');
}
