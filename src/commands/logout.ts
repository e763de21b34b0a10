import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { CliError } from '../cli/errors.ts';
import { forgetKey } from '../cli/remote/credentials.ts';
import { readServerUrl } from '../cli/remote/server-url.ts';

export default class Logout extends BaseCommand {
  static override summary = 'Forget the key that login has kept for a server.';
  static override description =
    'The key itself stays on the server until it ends: delete it there if somebody else may have read it.';
  static override examples = [
    { description: 'Log out', command: '<%= config.bin %> <%= command.id %> --server http://127.0.0.1:4000' },
  ];
  static override flags = {
    server: Flags.string({ description: 'Address of the server. Default: SVC_API_SERVER.', helpValue: '<url>' }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Logout);
    const given = flags.server ?? this.environment['SVC_API_SERVER'];
    if (!given) throw new CliError('USAGE', 'The server is missing. Pass --server <url>, or set SVC_API_SERVER.');
    const server = readServerUrl(given);
    const forgotten = forgetKey(server, this.environment);
    return this.print({ server, forgotten }, forgotten ? `Logged out of ${server}` : `There was no key for ${server}`);
  }
}
