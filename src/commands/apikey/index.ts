import * as Flags from '@oclif/core/flags';
import type { FlagsOf } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { keyFlags, requestOf } from '../../cli/input/key-flags.ts';

/** Flags that say what a key is to be, and mean nothing when one is deleted. */
const CREATE_ONLY = ['roles', 'permissions', 'description', 'expires-in', 'expires-at', 'overwrite'] as const;

export default class ApiKey extends KeyCommand {
  static override summary = 'Create or delete an API key.';
  static override description = `A new key's secret is written to stdout, once; everything else goes to stderr. What is missing is asked for where stdin and stderr are terminals.`;
  static override examples = [
    {
      description: 'Create a key and keep its secret in a variable',
      command: 'KEY=$(<%= config.bin %> apikey --create --name "CI deploy" --roles VIEWER)',
    },
    {
      description: 'Create a key with single permissions, as JSON',
      command:
        '<%= config.bin %> apikey --create --name "Docker bot" --permissions DOCKER:READ_ANY,DOCKER:UPDATE_ANY --json',
    },
    {
      description: 'Replace a key: the old secret stops working',
      command: '<%= config.bin %> apikey --create --name "CI deploy" --roles VIEWER --overwrite',
    },
    { description: 'Delete a key', command: '<%= config.bin %> apikey --delete --name "CI deploy"' },
    { description: 'Answer questions instead', command: '<%= config.bin %> apikey --create' },
  ];
  static override flags = {
    create: Flags.boolean({ description: 'Create a key.' }),
    delete: Flags.boolean({ description: 'Delete a key, and the keys that it created.' }),
    ...keyFlags,
  };

  protected override get errorFields(): object {
    return this.argv.includes('--delete') ? { deleted: 0 } : {};
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(ApiKey);
    checkMode(flags);
    await (flags.create ? this.create(requestOf(flags), flags) : this.delete(flags));
  }
}

function checkMode(flags: FlagsOf<typeof ApiKey>): void {
  if (flags.create === flags.delete) {
    const given = flags.create ? 'Both --create and --delete are given' : 'Neither --create nor --delete is given';
    throw new CliError('USAGE', `${given}. Pass exactly one of them.`);
  }
  const wrong = flags.delete ? CREATE_ONLY.filter((flag) => flags[flag] !== undefined) : [];
  if (wrong.length > 0) {
    throw new CliError(
      'USAGE',
      `${wrong.map((flag) => `--${flag}`).join(', ')} cannot be used with --delete. Leave ${wrong.length === 1 ? 'it' : 'them'} out.`,
    );
  }
}
