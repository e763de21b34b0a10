import * as Flags from '@oclif/core/flags';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag, newKeyFlags, noInputFlag, requestOf, yesFlag } from '../../cli/input/key-flags.ts';

export default class Create extends KeyCommand {
  static override summary = 'Create an API key.';
  static override description = `The secret is written to stdout, once; everything else goes to stderr. \
If stdin and stderr are terminals, prompts for missing values.`;
  static override examples = [
    {
      description: 'A key for a pipeline, which expires automatically',
      command: 'KEY=$(<%= config.bin %> <%= command.id %> "CI deploy" --roles VIEWER\n--expires-in 30d)',
    },
    {
      description: 'A key for 100 requests a minute, from one network alone',
      command: '<%= config.bin %> <%= command.id %> "Web shop" --roles VIEWER\n--limit 100/m --allow-from 10.0.0.0/8',
    },
    {
      description: 'See what a key would be allowed to do',
      command: '<%= config.bin %> <%= command.id %> "Docker bot"\n--permissions DOCKER:UPDATE_ANY --dry-run',
    },
  ];
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    ...newKeyFlags,
    'dry-run': Flags.boolean({ description: 'Show what the key would be allowed to do, and create nothing.' }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  async run(): Promise<object> {
    const input = await this.parse(Create);
    const { flags } = input;
    return this.create(requestOf({ ...flags, name: nameOf(input) }), {
      ...flags,
      dryRun: flags['dry-run'],
    });
  }
}
