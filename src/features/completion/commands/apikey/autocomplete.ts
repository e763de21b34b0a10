import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { examplesOf, BaseCommand, FLAGS_WITHOUT_STORE } from '../../../../cli/base-command.ts';
import { completionsFor, type Shell, SHELLS, WAIT_MS } from '../../cli/index.ts';
import { CliError } from '../../../../cli/errors.ts';
import { hasFlag } from '../../../../cli/output.ts';

export default class Autocomplete extends BaseCommand {
  static override isAtTop = true;
  static override enableJsonFlag = false;
  static override baseFlags: (typeof BaseCommand)['baseFlags'] = FLAGS_WITHOUT_STORE;
  static override summary = 'Print a script that lets a shell complete commands, flags, values and names of keys.';
  static override description =
    'In a CLI that has svc-api as a plugin, the script completes the commands of svc-api under the name of that CLI, ' +
    'and leaves the other commands to the completion that the CLI already has.';
  static override examples = examplesOf([
    ['Install it in bash, for new shells', 'bash >> ~/.bashrc'],
    ['Install it in zsh, for new shells', 'zsh >> ~/.zshrc'],
    [
      'Install it in fish, for new shells',
      'mkdir -p ~/.config/fish/conf.d && ' +
        '<%= config.bin %> <%= command.id %> fish >\n~/.config/fish/conf.d/<%= config.bin %>.fish',
    ],
  ]);
  static override args = {
    shell: Args.string({
      description: 'The shell. Default: that of the variable SHELL.',
      options: [...SHELLS],
      ignoreStdin: true,
    }),
  };

  static override flags = {
    complete: Flags.boolean({
      description: 'Print the words that can follow the line in COMP_LINE, as the script asks for them.',
      hidden: true,
    }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Autocomplete);
    const shell = args.shell ?? this.config.shell;
    if (!isShell(shell)) throw new CliError('USAGE', `Name the shell: ${SHELLS.join(', ')}.`);
    if (flags.complete) return this.complete(shell);
    const { scriptOf } = await import('../../cli/script.ts');
    await this.write(scriptOf(shell, this.config));
  }

  private async complete(shell: Shell): Promise<void> {
    const deadline = setTimeout(() => process.exit(0), WAIT_MS);
    try {
      await this.terminal.out((await completionsFor(shell, this.config)) ?? '');
    } finally {
      clearTimeout(deadline);
    }
  }

  /** After a failure, nothing is completed and nothing printed into the line. */
  override async catch(error: Error & { code?: string }): Promise<void> {
    if (!hasFlag(this.argv, '--complete')) return super.catch(error);
  }
}

function isShell(name: string): name is Shell {
  return SHELLS.some((shell) => shell === name);
}
