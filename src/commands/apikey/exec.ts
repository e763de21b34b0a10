import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import { grantFlags } from '../../cli/input/key-flags.ts';
import { runWithKey } from '../../cli/exec/run-with-key.ts';
import { createTemporaryKey } from '../../cli/exec/temporary-key.ts';
import type { Issue } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export default class Exec extends BaseCommand {
  // Stdout belongs to the command that is run.
  static override enableJsonFlag = false;
  static override strict = false;
  static override summary = 'Run a command with a temporary API key.';
  static override description = `The key is in the command's environment only, under API_KEY or the name of --env. It is deleted when the command ends, however it ends, and already at SIGINT, SIGTERM, SIGHUP or SIGQUIT, which are passed on to the command; it ends by itself after --ttl. Keys that were created with it are deleted with it. Stdin, stdout and stderr are the command's own. Its exit code is the exit code here: 128 and the signal's number where a signal ended it, 127 where it was not found, 126 where it could not be run.`;
  static override usage = '<%= command.id %> [FLAGS] -- <command> [<argument>...]';
  static override examples = [
    {
      description: 'A script with a key that may read',
      command: '<%= config.bin %> <%= command.id %> --roles VIEWER -- ./report.sh',
    },
    {
      description:
        'Use the key in one line: the shell that is started fills it in, and curl reads it where no other user can',
      command: `<%= config.bin %> <%= command.id %> --roles VIEWER -- sh -c 'echo "Authorization: Bearer $API_KEY" | curl -H @- --json @query.json http://127.0.0.1:4000/graphql'`,
    },
    {
      description: 'Under another name, for half an hour at most',
      command:
        '<%= config.bin %> <%= command.id %> --permissions DOCKER:READ_ANY --env SVC_TOKEN --ttl 30m -- npm run deploy',
    },
  ];
  static override flags = {
    roles: grantFlags.roles,
    permissions: grantFlags.permissions,
    ttl: Flags.string({
      description: 'End the key after this time, if it is still there: a number with s, m, h, d or w. Default: 10m.',
      helpValue: '90s|10m|1h',
    }),
    env: Flags.string({
      description: 'Environment variable that gets the secret. Default: API_KEY.',
      helpValue: '<variable>',
    }),
    name: Flags.string({
      description: 'Name of the key. Default: exec, the date, the time, and six letters and digits.',
      helpValue: '<name>',
    }),
  };

  async run(): Promise<void> {
    const [own, [command, ...args]] = this.split();
    const { flags, argv } = await this.parse(Exec, own);
    if (command === undefined || command === '') throw this.commandMissing();
    if (argv.length > 0)
      throw new CliError('USAGE', `"${printable(String(argv[0]))}" stands before --, where only flags can be.`);
    const { roles, permissions, name, ttl = '10m', env = 'API_KEY', database } = flags;
    const request = { roles, permissions, name, ttl, command };
    process.exitCode = await runWithKey({
      command,
      args,
      variable: env,
      create: () => createTemporaryKey({ request, database, config: this.config, issues: validateVariable(env) }),
      note: (text) => this.terminal.note(text),
    });
  }

  /** Our arguments, and those after `--`. oclif's parser does not get these: of two that are equal it would move one. */
  private split(): [own: string[], command: string[]] {
    const dashes = this.argv.indexOf('--');
    return dashes < 0 ? [this.argv, []] : [this.argv.slice(0, dashes), this.argv.slice(dashes + 1)];
  }

  private commandMissing(): CliError {
    const example = `${this.config.bin} apikey exec --roles VIEWER -- ./report.sh`;
    return new CliError('USAGE', `The command to run is missing. Put it after --, as in: ${example}`);
  }
}

function validateVariable(name: string): Issue[] {
  if (VARIABLE.test(name)) return [];
  const rule = 'Use letters, digits and _, with no digit first.';
  return [
    { code: 'USAGE', message: `--env is "${printable(name)}", which is no name of an environment variable. ${rule}` },
  ];
}
