import * as Flags from '@oclif/core/flags';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { keyFlags, requestOf } from '../../cli/input/key-flags.ts';

export default class Create extends KeyCommand {
  static override summary = 'Create an API key.';
  static override description = `The secret is written to stdout, once; everything else goes to stderr. \
If stdin and stderr are terminals, prompts for missing values.`;
  static override examples = [
    {
      description: 'A key for a pipeline, which expires by itself',
      command: 'KEY=$(<%= config.bin %> <%= command.id %> --name "CI deploy" --roles VIEWER --expires-in 30d)',
    },
    {
      description: 'See what a key would be allowed to do',
      command: '<%= config.bin %> <%= command.id %> --name "Docker bot" --permissions DOCKER:UPDATE_ANY --dry-run',
    },
  ];
  static override flags = {
    ...keyFlags,
    'dry-run': Flags.boolean({ description: 'Show what the key would be allowed to do, and create nothing.' }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Create);
    return this.create(requestOf(flags), { database: flags.database, dryRun: flags['dry-run'] });
  }
}
