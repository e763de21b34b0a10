import { setTimeout as delay } from 'node:timers/promises';
import * as Flags from '@oclif/core/flags';
import { examplesOf, BaseCommand } from '../../../../cli/base-command.ts';
import { CliError } from '../../../../cli/errors.ts';
import { permissionsFlag, rolesFlag } from '../../../../cli/input/key-flags.ts';
import { requirePlace } from '../../cli/credentials.ts';
import { loginServer, serverArgs, serverFlags } from '../../cli/login-server.ts';
import { keepGivenKey } from '../../cli/keep-given-key.ts';
import { scopeItems } from '../../../../keys/permissions/index.ts';
import { formatTime, printable } from '../../../../keys/basics/index.ts';

const DEFAULT_END = '30d';
/** Exactly the permissions that commands on a server need. */
const PERMISSIONS = [
  'API_KEY:CREATE_ANY',
  'API_KEY:READ_ANY',
  'API_KEY:UPDATE_ANY',
  'API_KEY:DELETE_ANY',
  'LOGS:READ_ANY',
  'PERMISSION:READ_ANY',
  'ME:READ_OWN',
];

export default class Login extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Get a key for a running server, after approval by a person.';
  static override description =
    "Shows a code. Someone with a key approves it on the server's page /device, or someone with access to the store " +
    'runs "<%= config.bin %> apikey<%= config.topicSeparator %>requests<%= config.topicSeparator %>approve <code>" ' +
    'there. The key is saved in a file that ' +
    'only you can read, and never printed. By default, it can manage keys; request more with --roles or ' +
    '--permissions.';
  static override examples = examplesOf([['Log in to a server, for a day', 'http://127.0.0.1:4000 --expires-in 1d']]);
  static override args = serverArgs;
  static override flags = {
    ...serverFlags,
    roles: rolesFlag('Roles to request, comma-separated, instead of those for managing keys.'),
    permissions: permissionsFlag('Permissions to request, comma-separated, instead of those for managing keys.'),
    'expires-in': Flags.string({
      aliases: ['ttl'],
      description: 'Request a key that expires after this time: a number followed by s, m, h, d or w. Default: 30d.',
      helpValue: '90m|12h|30d',
    }),
  };

  protected override readonly needsReader = true;

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Login);
    const server = loginServer({ ...flags, address: args.server }, this.environment, { isSent: true });
    const scope = readScope(flags);
    requirePlace(server, this.environment);
    const { askForKey } = await import('../../cli/ask-for-key.ts');
    const given = await askForKey(
      { server, scope, expiresIn: flags['expires-in'] ?? DEFAULT_END },
      {
        show: ({ userCode, page }) => this.terminal.note(`Open ${page} and type ${userCode}\nWaiting for approval.`),
        note: (text) => this.terminal.note(text),
        wait: (milliseconds) => delay(milliseconds),
        now: Date.now,
      },
    );
    const file = await keepGivenKey(server, given.secret, this.environment);
    const expiresAt = given.expiresIn === null ? null : formatTime(Date.now() + given.expiresIn * 1000);
    const end = expiresAt === null ? '' : ` until ${expiresAt}`;
    this.done = `Logged in to ${server}${end}: ${given.scope.replaceAll(' ', ', ')}`;
    return this.print({ server, scope: given.scope, expiresAt, file }, this.done);
  }
}

/** Builds the requested scope, with spaces between items. @throws CliError USAGE */
function readScope({ roles = [], permissions = [] }: { roles?: string[]; permissions?: string[] }): string {
  const wrong = [...roles, ...permissions].find((item) => !/^\S+$/.test(item.trim()));
  if (wrong !== undefined)
    throw new CliError('USAGE', `"${printable(wrong)}" is neither a role nor a permission. Put commas between them.`);
  const trimmed = (list: readonly string[]) => list.map((item) => item.trim());
  return scopeItems({ roles: trimmed(roles), permissions: trimmed(permissions) }).join(' ') || PERMISSIONS.join(' ');
}
