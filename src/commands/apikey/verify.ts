import { createCatalog } from '../../keys/permissions/index.ts';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import { commandText } from '../../cli/output.ts';
import { StoreCommand } from '../../cli/manage/key-command.ts';
import { noInputFlag } from '../../cli/input/key-flags.ts';
import { readSecretInput } from '../../cli/input/input.ts';
import { keyJson, verdictOn } from '../../cli/views/key-view.ts';
import { OPERATOR, readPermission } from '../../keys/authorization/index.ts';
import { stateOf } from '../../keys/operations/index.ts';

const STDIN = '-';
const NOT_VALID = 3;
const NOT_ALLOWED = 4;

export default class Verify extends StoreCommand {
  static override group = 'Leaks';
  // Arguments are checked here: oclif would repeat an unexpected one, which may be a secret.
  static override strict = false;
  static override summary = 'Show which API key a secret belongs to, and whether it is valid.';
  static override description =
    'The secret is read from stdin, or from a prompt if stdin and stderr are terminals. It cannot be an argument, ' +
    'which every user of the machine could see. Exits with 0 for a valid secret, 3 for an invalid one, and 4 for a ' +
    'valid one that lacks the given permission. Does not count as a use of the key.';
  static override usage =
    '<%= command.id %> - [--permission <resource:action>] [--json] [--no-input] [--database <path>]';
  static override examples = examplesOf([
    ['Find out which key a secret belongs to', '-'],
    [
      'Check in a script whether its key has a permission',
      `printf %s "$API_KEY" |\n<%= config.bin %> <%= command.id %> - --permission GRAFANA:UPDATE_ANY`,
    ],
  ]);
  static override flags = {
    permission: Flags.string({
      description: 'Also check whether the key has this permission.',
      helpValue: '<resource:action>',
    }),
    'no-input': noInputFlag,
  };

  async run(): Promise<object> {
    const { flags } = await this.parseArguments();
    const { permission: wanted } = flags;
    // Validates the permission and the place before the user types a secret.
    const permission =
      wanted === undefined ? undefined : readPermission(wanted, createCatalog(await this.additions([wanted])));
    this.requireStore(flags);
    const secret = await readSecretInput(this.interactive);
    return this.withStore(flags, async (keys) => {
      const found = await keys.identify(secret, OPERATOR);
      const { text, ...verdict } = verdictOn(found, permission, keys.catalog);
      if (!verdict.valid) process.exitCode = NOT_VALID;
      else if (verdict.permitted === false) process.exitCode = NOT_ALLOWED;
      return this.printLines(
        { ...verdict, apiKey: 'apiKey' in found ? keyJson(await stateOf(keys, found.apiKey)) : null },
        text,
      );
    });
  }

  private async parseArguments() {
    const parsed = await this.parse(Verify).catch((error: unknown) => {
      // An unknown flag may be a secret, too.
      if (error instanceof Error && 'flags' in error)
        throw new CliError('USAGE', 'An unknown flag is given. Leave it out.');
      throw error;
    });
    if (parsed.argv.length === 1 && parsed.argv[0] === STDIN) return parsed;
    const command = commandText(this.config, 'apikey:verify');
    throw new CliError('USAGE', `Pass only -, for stdin: a secret must not be an argument. Run: ${command} - < file`);
  }
}
