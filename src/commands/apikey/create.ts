import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag, newKeyFlags, noInputFlag, requestOf, yesFlag } from '../../cli/input/key-flags.ts';

export default class Create extends KeyCommand {
  static override group = 'Keys';
  static override aliases = ['apikey:add'];
  static override summary = 'Create an API key.';
  static override description = `The secret is written to stdout, once; everything else goes to stderr. \
If stdin and stderr are terminals, prompts for missing values.`;
  static override examples = examplesOf([
    [
      'A key for a pipeline, which expires automatically',
      'KEY=$(<%= config.bin %> <%= command.id %> "CI deploy" --roles VIEWER\n--expires-in 30d)',
    ],
    [
      'A key for 100 requests a minute, from one network only',
      '"Web shop" --roles VIEWER\n--rate 100/m --allow-from 10.0.0.0/8',
    ],
    ['Preview the permissions of a key', '"Grafana bot"\n--permissions GRAFANA:UPDATE_ANY --dry-run'],
  ]);
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    ...newKeyFlags,
    'dry-run': Flags.boolean({ description: 'Show the key and its permissions, without creating it.' }),
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
