import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { examplesOf, type FlagsOf } from '../../../../cli/base-command.ts';
import { CHANGES_MADE, CliError, shownText } from '../../../../cli/errors.ts';
import { readSecretInput } from '../../../../cli/input/input.ts';
import { exclusiveFlags, nameFlag, noInputFlag, yesFlag } from '../../../../cli/input/key-flags.ts';
import { KeyCommand, nameOf } from '../../../../cli/manage/key-command.ts';
import { commandText } from '../../../../cli/output.ts';
import { keyJson } from '../../../../cli/views/key-view.ts';
import { namedServer, type PlaceFlags, requireEncryption } from '../../../../cli/with-keys.ts';
import { OPERATOR } from '../../../../keys/authorization/index.ts';
import { isKeysError, KeysError, printable, UUID } from '../../../../keys/basics/index.ts';
import { validateName } from '../../../../keys/key/index.ts';
import { stateOf } from '../../../../keys/operations/index.ts';
import type { CatalogAdditions } from '../../../../keys/permissions/index.ts';
import type { KeyName } from '../../../../keys/service/index.ts';
import { changes, containedJson, nameIn, textOf } from '../../cli/contain-view.ts';
import type { Contained } from '../../contain.ts';
import { containOperations } from '../../operations.ts';

const STDIN = '-';
/** A secret of another service can have the form of a name. */
const LIKE_A_SECRET = /^\S{20,}$/;

type RevokeFlags = FlagsOf<typeof Revoke> & PlaceFlags;

/** A key whose secret was read. */
interface KeyOfSecret {
  key: KeyName;
  /** True for the previous secret of a rotation. */
  isPrevious: boolean;
}

export default class Revoke extends KeyCommand {
  static override group = 'Leaks';
  static override summary = 'Revoke an API key, by its name or its secret.';
  static override description =
    'Disables the key, so that its child keys are refused as well. --delete deletes it with its child keys instead. ' +
    'On a terminal, you are asked first.\nWith -, the secret is read from stdin, or from a prompt. It cannot be an ' +
    'argument, which every user of the machine could see. If it is the previous secret of a rotation, only that ' +
    'secret is revoked, unless you pass --delete or --undo-changes: these are about the whole key. With --server, ' +
    'the secret is all that is needed to disable its key: you need no other key.\n--undo-changes is for a leaked ' +
    'key: it disables the key and all its child keys, and undoes their changes to other keys. Secrets that the key ' +
    'issued for other keys are revoked: the previous secret is restored if it is still in its grace period, ' +
    'otherwise that key is disabled. Permissions that the key added are removed, keys that it enabled are disabled, ' +
    'and requests of applications that it approved are cancelled. The plan is shown first, and everything happens in ' +
    'one transaction. A deleted key is found by its name or id.';
  static override examples = examplesOf([
    ['Disable a key', '"CI deploy"'],
    ['Revoke the key that a secret belongs to', '-'],
    ['Show the changes a leaked key made, and what would be undone', '"CI deploy" --undo-changes --dry-run'],
    ['Undo only its changes since it leaked', '"CI deploy" --undo-changes --since 2h --yes'],
  ]);
  static override args = {
    name: Args.string({ description: 'Name of the key, or - to read its secret from stdin.', ignoreStdin: true }),
  };
  static override flags = {
    name: nameFlag,
    delete: Flags.boolean({ description: 'Delete the key and its child keys.' }),
    'undo-changes': Flags.boolean({ description: 'Also undo the changes that the key made to other keys.' }),
    since: Flags.string({
      description:
        'With --undo-changes: undo only its changes from this time on: a date (from 00:00 UTC), an RFC 3339 date ' +
        'and time, or how long ago. The key and its child keys are disabled in any case.',
      helpValue: '<date>|24h',
    }),
    'dry-run': Flags.boolean({ description: 'Only show what would be done.' }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  private undoes = false;

  async run(): Promise<object> {
    const input = await this.parse(Revoke);
    const { flags } = input;
    this.undoes = flags['undo-changes'];
    if (flags.delete && flags['undo-changes']) throw exclusiveFlags('--delete', '--undo-changes');
    if (flags.since !== undefined && !flags['undo-changes'])
      throw new CliError('USAGE', '--since is for --undo-changes. Pass that as well.');
    const name = nameOf(input);
    if (name === undefined)
      throw new CliError('USAGE', 'The name of the key is missing. Pass it as an argument, or with --name <name>.');
    if (flags['undo-changes'] && !flags['dry-run'])
      this.requireAnswer('undo the changes of the key, or --dry-run to see what that does');
    if (input.args.name === STDIN) return this.revokeSecret(flags);
    if (validateName(name) && !UUID.test(name)) throw this.isNoName();
    try {
      return await this.revoke(name, flags);
    } catch (error) {
      // The error would repeat what may be a secret.
      if (isKeysError(error) && error.code === 'NOT_FOUND' && LIKE_A_SECRET.test(name) && !UUID.test(name))
        throw this.isNoName();
      throw error;
    }
  }

  /** Undoing changes compares grants, which need their declarations. */
  protected override additions(): Promise<CatalogAdditions> {
    return this.undoes ? super.additions() : this.readableAdditions();
  }

  private isNoName(): CliError {
    const command = commandText(this.config, 'apikey:revoke');
    return new CliError(
      'USAGE',
      `The argument is not the name of a key. If it is a secret, the history of the shell has it now. Pipe it: ${command} - < file`,
    );
  }

  /** Revokes a key by its name or id. */
  private revoke(name: string, flags: RevokeFlags): Promise<object> {
    if (flags['undo-changes']) return this.undo(name, flags);
    return this.end(name, flags);
  }

  /** Disables or deletes a key, after a question on a terminal. */
  private end(nameOrId: string, flags: RevokeFlags): Promise<object> {
    const [what, verb] = flags.delete ? (['DELETE', 'delete'] as const) : (['DISABLE', 'disable'] as const);
    return this.withKeys(flags, async (keys) => {
      const id = nameOrId.toLowerCase();
      const byId = UUID.test(id) ? await keys.apiKey({ id }) : undefined;
      const { apiKey: key } = byId ?? (await this.findKey(keys, nameOrId));
      if (flags['dry-run'] || this.interactive) {
        const { planAll, planJson, planText } = await import('../../../../cli/manage/change-many.ts');
        const plan = await planAll(keys, [key], { what });
        const text = shownText(planText(plan, verb));
        if (flags['dry-run']) return this.print(planJson(plan, true), text);
        const question = `${flags.delete ? 'Delete' : 'Disable'} "${printable(key.name, 100)}"?`;
        if (plan.changing.length > 0) await this.confirm(question, text);
      }
      return flags.delete
        ? this.showDeleted(await keys.deleteApiKeys({ ids: [key.id] }))
        : this.setFoundEnabled(keys, key, false);
    });
  }

  /** Disables a key, and undoes its changes to other keys. */
  private undo(key: string, { since, yes, 'dry-run': dryRun, ...flags }: RevokeFlags): Promise<object> {
    return this.withKeys(flags, async (keys) => {
      const { containKey } = keys.of(containOperations);
      if (yes && !dryRun) return this.show(await containKey({ key, since }), false);
      const plan = await containKey({ key, since, dryRun: true });
      if (dryRun) return this.show(plan, true);
      await this.terminal.note(shownText(textOf(plan, 'Plan', ['to change', 'to cancel'])));
      if (changes(plan)) await this.confirm(`Revoke ${nameIn(plan)} and undo its changes?`);
      return this.show(await containKey({ key: plan.apiKey.id, since }), false);
    });
  }

  private show(contained: Contained, dryRun: boolean): Promise<object> {
    if (!dryRun && changes(contained)) this.done = CHANGES_MADE;
    const text = dryRun
      ? textOf(contained, 'Plan', ['to change', 'to cancel'])
      : textOf(contained, 'Undone', ['changed', 'cancelled']);
    return this.print(containedJson(contained, dryRun), shownText(text));
  }

  /** Revokes the key that a secret belongs to. */
  private async revokeSecret(flags: RevokeFlags): Promise<object> {
    const server = namedServer(flags, this.environment);
    const isPlain = !flags.delete && !flags['undo-changes'] && !flags['dry-run'];
    if (server !== undefined && !isPlain)
      throw new CliError(
        'USAGE',
        'A server does not say whose secret it is. With --server, pass the name of the key, or - without other flags.',
      );
    if (server !== undefined) requireEncryption(server, flags);
    const secret = await readSecretInput(this.interactive);
    if (server !== undefined) return this.revokeAt(server, secret);
    const { key, isPrevious } = await this.findSecret(secret, flags);
    if (flags['undo-changes']) return this.undo(key.id, flags);
    return isPrevious && !flags.delete ? this.endPrevious(key, flags) : this.end(key.id, flags);
  }

  /** The key that a secret belongs to. @throws KeysError NOT_FOUND, also for a secret that a rotation replaced */
  private findSecret(secret: string, flags: RevokeFlags): Promise<KeyOfSecret> {
    return this.withStore(flags, async (keys) => {
      const found = await keys.identify(secret, OPERATOR);
      if ('unknown' in found) throw new KeysError('NOT_FOUND', 'No API key in this store has this secret.');
      const { apiKey: key, publicId, status } = found;
      if (status === 'ROTATED' && !flags.delete && !flags['undo-changes'])
        throw new KeysError(
          'NOT_FOUND',
          `This secret of API key "${printable(key.name, 100)}" was replaced by a rotation, and is refused already.`,
        );
      return { key, isPrevious: status !== 'ROTATED' && publicId !== key.publicId };
    });
  }

  /** Revokes the previous secret of a rotation. */
  private async endPrevious(key: KeyName, flags: RevokeFlags): Promise<object> {
    const what = `the previous secret of API key "${printable(key.name, 100)}"`;
    if (!flags['dry-run'] && this.interactive) await this.confirm(`Revoke ${what}?`);
    return this.withStore(flags, async (keys) => {
      if (flags['dry-run'])
        return this.print({ dryRun: true, keys: [key].map(({ id, name }) => ({ id, name })) }, `- revoke ${what}`);
      const { after } = await keys.finishRotation(key.id, OPERATOR);
      this.done = CHANGES_MADE;
      return this.printLines({ apiKey: keyJson(await stateOf(keys, after)), changed: true }, `Revoked ${what}.`);
    });
  }

  /** Sends a secret to a server, which revokes it for anyone who has it (RFC 7009). */
  private async revokeAt(server: string, secret: string): Promise<object> {
    const { postForm } = await import('../../../consent/cli/oauth.ts');
    const answer = await postForm(server, '/revoke', { token: secret });
    if (Object.keys(answer).length > 0)
      throw new KeysError('SERVER_INCOMPATIBLE', `The server ${server} did not revoke the secret. Check its address.`);
    return this.printLines(
      { apiKey: null, changed: null },
      `The server ${server} accepted the secret. If a key has it, the key is disabled now.`,
    );
  }
}
