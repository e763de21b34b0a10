import * as Flags from '@oclif/core/flags';
import { examplesOf, type FlagsOf } from '../../../../cli/base-command.ts';
import { CliError } from '../../../../cli/errors.ts';
import { KeyCommand } from '../../../../cli/manage/key-command.ts';
import type { PlaceFlags } from '../../../../cli/with-keys.ts';
import { grantFlags, limitsIn, restrictionFlags } from '../../../../cli/input/key-flags.ts';
import { commandText } from '../../../../cli/output.ts';
import { explainSpacedList } from '../../../../cli/explain/did-you-mean.ts';
import { ROLES } from '../../../../keys/permissions/index.ts';
import { type Issue, printable } from '../../../../keys/basics/index.ts';
import { loginServer } from '../../../login/cli/login-server.ts';
import { childEnvironment } from '../../cli/child-environment.ts';
import { runWithKey } from '../../cli/run-with-key.ts';
import { createTemporaryKey } from '../../cli/temporary-key.ts';

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export default class Exec extends KeyCommand {
  static override group = 'Automation';
  // Stdout belongs to the command that runs.
  static override enableJsonFlag = false;
  static override strict = false;
  static override summary = 'Run a command with a temporary API key.';
  static override description =
    "The secret is only in the command's environment, in API_KEY or the variable that --env names. " +
    'The key, and keys created with it, are deleted when the command ends, or as soon as this process receives ' +
    'SIGINT, SIGTERM, SIGHUP or SIGQUIT, which it passes on to the command. In any case, the key expires after ' +
    '--expires-in. SVC_API_KEY and the credentials of a key store on PostgreSQL (SVC_API_DATABASE, PGPASSWORD and ' +
    'the like) are removed from the environment. The command has stdin, stdout and stderr to itself. With ' +
    '--federated, you need a token instead of a key: from SVC_API_ID_TOKEN (GitLab), ACTIONS_ID_TOKEN_REQUEST_URL ' +
    '(GitHub, Forgejo), "buildkite-agent oidc", or /var/run/secrets/svc-api/token. --roles and --permissions then ' +
    'request only a part of the grants. Exits with the exit code of the command: 128 plus the signal number if a ' +
    'signal ended it, 127 if it was not found, 126 if it could not be run.';
  static override usage = '<%= command.id %> [FLAGS] -- <command> [<argument>...]';
  static override examples = examplesOf([
    ['Run a script with a read-only key', '--roles VIEWER -- ./report.sh'],
    [
      'Use the key in one line: the inner shell expands it, and curl reads it from stdin, not from its arguments',
      `--roles VIEWER -- sh -c\n'echo "Authorization: Bearer $API_KEY" |\n` +
        `curl -H @- --json @query.json\nhttp://127.0.0.1:4000/graphql'`,
    ],
    ['Learn which permissions a script needs', '--learn -- ./report.sh'],
    [
      'Use another variable, and let the key expire after half an hour',
      '--permissions GRAFANA:READ_ANY\n--env SVC_TOKEN --expires-in 30m -- npm run deploy',
    ],
    ['In a pipeline without a stored secret', '--federated\n--server https://keys.example.org -- ./deploy.sh'],
  ]);
  static override flags = {
    roles: grantFlags.roles,
    permissions: grantFlags.permissions,
    budget: restrictionFlags.budget,
    uses: restrictionFlags.uses,
    learn: Flags.boolean({
      description:
        'After the command, print on stderr which permissions it used: as flags, and for keys.yaml. This takes ' +
        'some seconds, until servers have recorded them. Without --roles and --permissions, the key has ADMIN.',
    }),
    'expires-in': Flags.string({
      aliases: ['ttl'],
      description: 'Let the key expire after this time: a number followed by s, m, h, d or w. Default: 10m.',
      helpValue: '90s|10m|1h',
    }),
    env: Flags.string({
      description: 'Environment variable for the secret. Default: API_KEY.',
      helpValue: '<variable>',
    }),
    federated: Flags.boolean({
      description: "Get the key from --server in exchange for the platform's identity token.",
    }),
    audience: Flags.string({
      description: 'With --federated: the audience of the token. Default: the address of the server.',
      helpValue: '<text>',
    }),
    'token-file': Flags.string({
      description: 'With --federated: a file with the token; - for stdin. Default: the token of the platform.',
      helpValue: '<path>|-',
    }),
    name: Flags.string({
      description: 'Name of the key. Default: exec, the date, the time and six random letters and digits.',
      helpValue: '<name>',
    }),
  };

  async run(): Promise<object> {
    const [own, [command, ...args]] = this.split();
    const { flags, argv } = await this.parse(Exec, own);
    if (command === undefined || command === '') throw this.commandMissing();
    if (argv.length > 0) {
      const misplaced = String(argv[0]);
      // A word that is not a grant is probably the command.
      const isGrant = misplaced.includes(':') || ROLES.some((role) => role === misplaced.toUpperCase());
      throw new CliError(
        'USAGE',
        (isGrant ? explainSpacedList(own, Exec.flags, misplaced) : undefined) ??
          `"${printable(misplaced)}" comes before --, where only flags are allowed. Put it after --.`,
      );
    }
    const { permissions, name, 'expires-in': ttl, env = 'API_KEY', database, learn } = flags;
    const roles = flags.roles ?? (learn && !permissions ? ['ADMIN'] : undefined);
    const request = { roles, permissions, limits: limitsIn(flags), name, ttl, command };
    const note = (text: string) => this.terminal.note(text);
    const exitCode = await runWithKey({
      command,
      args,
      environment: childEnvironment(this.environment, database),
      variable: env,
      create: async () => {
        if (flags.federated) return this.federated(flags, request);
        for (const flag of ['audience', 'token-file'] as const)
          if (flags[flag] !== undefined) throw new CliError('USAGE', `--${flag} needs --federated. Add it.`);
        return createTemporaryKey({ request, place: await this.place(flags), issues: validateVariable(env), note });
      },
      learns: learn,
      note,
    });
    process.exitCode = exitCode;
    return { exitCode };
  }

  /** A key of the server, in exchange for the platform's identity token. @throws CliError USAGE; KeysError */
  private async federated(
    flags: FlagsOf<typeof Exec> & PlaceFlags,
    request: Parameters<typeof createTemporaryKey>[0]['request'],
  ) {
    if (flags.database !== undefined)
      throw new CliError('USAGE', '--federated uses a server, not a key store. Leave --database out.');
    for (const flag of ['budget', 'uses', 'learn'] as const)
      if (flags[flag] !== undefined)
        throw new CliError('USAGE', `--federated gets a key by a rule of the server. Leave --${flag} out.`);
    const server = loginServer(flags, this.environment, { isSent: true });
    const [{ exchangeTemporaryKey }, { findIdToken }] = await Promise.all([
      import('../../cli/federated-key.ts'),
      import('../../cli/id-token.ts'),
    ]);
    const places = { file: flags['token-file'], env: this.environment, audience: flags.audience ?? server };
    const issues = validateVariable(flags.env ?? 'API_KEY');
    const note = (text: string) => this.terminal.note(text);
    return exchangeTemporaryKey({ request, server, token: () => findIdToken(places), issues, note });
  }

  /** Our arguments, and those after `--`, which oclif's parser must not see: it would reorder equal ones. */
  private split(): [own: string[], command: string[]] {
    const separator = this.argv.indexOf('--');
    return separator < 0 ? [this.argv, []] : [this.argv.slice(0, separator), this.argv.slice(separator + 1)];
  }

  private commandMissing(): CliError {
    const example = `${commandText(this.config, 'apikey:exec')} --roles VIEWER -- ./report.sh`;
    return new CliError('USAGE', `The command to run is missing. Put it after --, as in: ${example}`);
  }
}

function validateVariable(name: string): Issue[] {
  if (VARIABLE.test(name)) return [];
  const rule = 'Use letters, digits and _, and do not begin with a digit.';
  const message = `--env is "${printable(name)}", which is not a valid name of an environment variable. ${rule}`;
  return [{ code: 'USAGE', message }];
}
