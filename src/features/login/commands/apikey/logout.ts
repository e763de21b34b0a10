import * as Flags from '@oclif/core/flags';
import { examplesOf, BaseCommand } from '../../../../cli/base-command.ts';
import { CliError } from '../../../../cli/errors.ts';
import { noInputFlag, yesFlag } from '../../../../cli/input/key-flags.ts';
import { forgetKey, keptKey, keptServers } from '../../cli/credentials.ts';
import { loginServer, serverArgs, serverFlags } from '../../cli/login-server.ts';
import { isKeysError, KeysError } from '../../../../keys/basics/index.ts';

export default class Logout extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Revoke the key that login saved for a server, and remove it.';
  static override description =
    'Deletes the key on the server. If it has created other keys, these are deleted as well, after you confirm. If the ' +
    'server refuses or cannot be reached, the saved key is kept. --local only removes it from this machine: on the ' +
    'server, it stays valid until it expires. Without an address, it takes the only server that you are logged in to.';
  static override examples = examplesOf([
    ['Log out', 'http://127.0.0.1:4000'],
    ['Forget the key of a server that is gone', 'http://127.0.0.1:4000 --local'],
  ]);
  static override args = serverArgs;
  static override flags = {
    ...serverFlags,
    local: Flags.boolean({ description: 'Only remove the key from this machine, and send nothing to the server.' }),
    yes: yesFlag,
    'no-input': noInputFlag,
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Logout);
    const server = loginServer({ ...flags, address: args.server }, this.environment, {
      isSent: !flags.local,
      kept: () => keptServers(this.environment),
    });
    const secret = flags.local ? undefined : keptKey(server, this.environment);
    if (secret !== undefined) await this.end(server, secret);
    const forgotten = forgetKey(server, this.environment);
    const ended = secret !== undefined;
    const text = ended
      ? `Logged out of ${server}: the key was deleted`
      : `The key for ${server} was removed from this machine, and stays valid on the server until it expires`;
    if (forgotten) this.done = text;
    return this.printLines({ server, forgotten, ended }, forgotten ? text : `There was no key for ${server}`);
  }

  /** @throws CliError CANCELLED, or USAGE without a terminal; what `endKey` throws, with a remedy */
  private async end(server: string, secret: string): Promise<void> {
    const { endKey } = await import('../../../consent/cli/oauth.ts');
    const spared = await endKey({ server, secret, endsCreated: this.assumesYes }).catch(orKept);
    if (spared === undefined) return;
    await this.confirmEnd(spared);
    await endKey({ server, secret, endsCreated: true }).catch(orKept);
  }

  private async confirmEnd(spared: string): Promise<void> {
    if (!this.interactive)
      throw new CliError(
        'USAGE',
        `${spared} Pass --yes to log out anyway, or --local to only remove the key from this machine.`,
      );
    await this.confirm(`${spared} Log out?`);
  }
}

/** @throws the given error, with the state of the key */
function orKept(error: unknown): never {
  if (!isKeysError(error)) throw error;
  const message = `${error.message} The key is kept: try again, or pass --local to only remove it from this machine.`;
  throw new KeysError(error.code, message, { cause: error });
}
