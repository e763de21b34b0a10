import * as Flags from '@oclif/core/flags';
import { examplesOf, type FlagsOf } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import type { Failed } from '../../cli/explain/present.ts';
import { verbLines } from '../../cli/help/verbs.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import {
  inGroup,
  labelFlags,
  nameFlag,
  newKeyFlags,
  noInputFlag,
  requestOf,
  yesFlag,
} from '../../cli/input/key-flags.ts';

const LABELS = Object.entries(labelFlags).map(([flag, { helpValue }]) => `[--${flag} ${String(helpValue)}]`);

export default class ApiKey extends KeyCommand {
  static override summary = 'Create or delete an API key.';
  static override description =
    'If stdin and stderr are terminals, you are asked for missing values.\n\n' +
    'Exit codes and environment variables: ' +
    '"<%= config.bin %> <%= command.id %><%= config.topicSeparator %>help exit-codes" and ' +
    '"<%= config.bin %> <%= command.id %><%= config.topicSeparator %>help environment".';
  static override usage = [
    '<%= command.id %> --create --name <name> [--roles <role,…>] [--permissions <resource:action,…>] ' +
      '[--rate 100/m] [--budget <number>] [--uses <number>] [--allow-from <network,…>] ' +
      `${LABELS.join(' ')} [--expires-in 90m|12h|30d] ` +
      '[--expires-at <date>] [--overwrite] [--json]',
    '<%= command.id %> --delete [--name <name>] [--json]',
  ];
  static override examples = examplesOf([
    [
      'Create a key and keep its secret in a variable',
      'KEY=$(<%= config.bin %> <%= command.id %> --create --name "CI deploy" --roles VIEWER)',
    ],
    [
      'Create a key with individual permissions, as JSON',
      '--create --name "Grafana bot"\n--permissions GRAFANA:READ_ANY,GRAFANA:UPDATE_ANY --json',
    ],
    ['Replace a key: the old secret stops working', '--create --name "CI deploy" --roles VIEWER --overwrite'],
    ['Delete a key', '--delete --name "CI deploy"'],
    ['Create a key by answering prompts', '--create'],
  ]);
  static override flags = {
    name: nameFlag,
    ...inGroup('CREATE', {
      create: Flags.boolean({
        description: 'Create a key. Its secret is written to stdout, once; everything else goes to stderr.',
      }),
      ...newKeyFlags,
    }),
    ...inGroup('DELETE', { delete: Flags.boolean({ description: 'Delete a key, and the keys that it created.' }) }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  protected override get errorFields(): object {
    return this.argv.includes('--delete') ? { deleted: 0 } : {};
  }

  protected override get failed(): Failed {
    return this.argv.length > 0 ? super.failed : { ...super.failed, verbs: verbLines(this.config.commands) };
  }

  async run(): Promise<object> {
    const { flags } = await this.parse(ApiKey);
    checkMode(flags);
    return flags.create ? this.create(requestOf(flags), flags) : this.delete(flags);
  }
}

function checkMode(flags: FlagsOf<typeof ApiKey>): void {
  if (flags.create === flags.delete) {
    const given = flags.create ? 'Both --create and --delete are given' : 'Neither --create nor --delete is given';
    throw new CliError('USAGE', `${given}. Pass exactly one of them.`);
  }
  const given: Readonly<Record<string, unknown>> = flags;
  const wrong = flags.delete ? Object.keys(newKeyFlags).filter((flag) => given[flag] !== undefined) : [];
  if (wrong.length > 0) {
    const flags = wrong.map((flag) => `--${flag}`).join(', ');
    const them = wrong.length === 1 ? 'it' : 'them';
    throw new CliError('USAGE', `${flags} cannot be used with --delete. Leave ${them} out.`);
  }
}
