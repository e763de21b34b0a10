import * as Flags from '@oclif/core/flags';
import { CliError } from '../../cli/errors.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';

export default class Apply extends KeyCommand {
  static override summary = 'Bring the API keys to what a file declares.';
  static override description = `What is left out of a declared key is none, but for "enabled": a key that was switched off stays off. All changes are made together or not at all, and where nothing is to change nothing is written. With --dry-run, exit code 2 means that there are changes, and every failure is 1.`;
  static override examples = [
    { description: 'See what would change', command: '<%= config.bin %> apikey apply -f keys.yaml --dry-run' },
    {
      description: 'Make the changes; the secret of each new key goes into a file of its name',
      command: '<%= config.bin %> apikey apply -f keys.yaml --secrets-dir ./secrets',
    },
    {
      description: 'Also delete keys that an earlier apply made and that are declared no longer',
      command: '<%= config.bin %> apikey apply -f keys.yaml --prune --json',
    },
  ];
  static override flags = {
    file: Flags.string({
      char: 'f',
      description: 'The file with the declared keys, as YAML or JSON; - for stdin.',
      helpValue: '<path>',
    }),
    'dry-run': Flags.boolean({
      description: 'Show what would change, and change nothing. Exit code 2 where there are changes.',
    }),
    prune: Flags.boolean({
      description: 'Delete keys that an apply made and that are declared no longer; never others.',
    }),
    'secrets-dir': Flags.string({
      description: 'Folder for the secrets of new keys: each in a file of its name, for its owner alone.',
      helpValue: '<folder>',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Apply);
    const { database, file, prune, 'dry-run': dryRun, 'secrets-dir': secretsDir } = flags;
    if (!file) throw new CliError('USAGE', 'The file is missing. Pass -f <path>, or -f - for stdin.');
    if (secretsDir === '')
      throw new CliError('USAGE', 'The folder for the secrets is empty. Pass --secrets-dir <folder>, or leave it out.');
    const { applyKeys } = await import('../../cli/apply/apply-keys.ts');
    const { hasChanges } = await import('../../keys/apply/plan.ts');
    const plan = await applyKeys({
      file,
      database,
      prune,
      dryRun,
      secretsDir,
      json: this.jsonEnabled(),
      config: this.config,
      print: (json, text) => this.print(json, text),
      printSecrets: (json, text) => this.deliver(json, text),
    });
    if (dryRun && hasChanges(plan)) process.exitCode = 2;
  }

  /** With --dry-run, 2 is the answer that there are changes: no failure may look like it. */
  override async catch(failure: Error & { code?: string }): Promise<void> {
    await super.catch(failure);
    if (this.argv.includes('--dry-run')) process.exitCode = 1;
  }
}
