import * as Args from '@oclif/core/args';
import { examplesOf, BaseCommand, FLAGS_WITHOUT_STORE } from '../../cli/base-command.ts';
import { type Shell, SHELLS } from '../../cli/completion/index.ts';

export default class Completion extends BaseCommand {
  static override enableJsonFlag = false;
  static override baseFlags: (typeof BaseCommand)['baseFlags'] = FLAGS_WITHOUT_STORE;
  static override summary = 'Print a script with which a shell completes commands, flags, values, and names of keys.';
  static override description =
    'In a CLI that has svc-api as a plugin, the script completes the commands of svc-api under the name of that CLI, ' +
    'and leaves the others to what completed them before.';
  static override examples = examplesOf([
    ['Install it in bash, for all shells to come', 'bash >> ~/.bashrc'],
    ['Install it in zsh, for all shells to come', 'zsh >> ~/.zshrc'],
    [
      'Install it in fish, for all shells to come',
      'mkdir -p ~/.config/fish/completions && ' +
        '<%= config.bin %> <%= command.id %> fish >\n~/.config/fish/completions/<%= config.bin %>-apikey.fish',
    ],
  ]);
  static override args = {
    shell: Args.string({
      description: 'The shell.',
      options: [...SHELLS],
      required: true,
      ignoreStdin: true,
    }),
  };

  async run(): Promise<void> {
    const { args } = await this.parse(Completion);
    const { scriptOf } = await import('../../cli/completion/script.ts');
    await this.write(scriptOf(args.shell as Shell, this.config));
  }
}
