import * as Flags from '@oclif/core/flags';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { keyFlags, requestOf } from '../../cli/input/key-flags.ts';

export default class Create extends KeyCommand {
  static override summary = 'Create an API key.';
  static override description = `The secret is written to stdout, once; everything else goes to stderr. What is missing is asked for where stdin and stderr are terminals.`;
  static override examples = [
    {
      description: 'A key for a pipeline, that ends by itself',
      command: 'KEY=$(<%= config.bin %> apikey create --name "CI deploy" --roles VIEWER --expires-in 30d)',
    },
    {
      description: 'See what a key would be allowed',
      command: '<%= config.bin %> apikey create --name "Docker bot" --permissions DOCKER:UPDATE_ANY --dry-run',
    },
  ];
  static override flags = {
    ...keyFlags,
    'dry-run': Flags.boolean({ description: 'Show what the key would be allowed, and create nothing.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Create);
    await this.create(requestOf(flags), { database: flags.database, dryRun: flags['dry-run'] });
  }
}
