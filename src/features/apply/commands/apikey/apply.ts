import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { CliError } from '../../../../cli/errors.ts';
import { exclusiveFlags } from '../../../../cli/input/key-flags.ts';
import { KeyCommand } from '../../../../cli/manage/key-command.ts';
import { warn } from '../../../../cli/terminal.ts';
import { warningsOf } from '../../../../keys/changes/index.ts';

export default class Apply extends KeyCommand {
  static override group = 'Automation';
  static override summary = 'Create and update API keys to match a file.';
  static override description =
    'Keys that the file does not declare stay as they are, unless you pass --prune. ' +
    'A field that a declared key leaves out is emptied, except "enabled": a disabled key stays disabled. ' +
    'If a key has expired by its "expiresIn", it is renewed with a new secret. ' +
    'If its secret is older than its "rotate" allows, the key is rotated. ' +
    'All changes are made in one transaction. ' +
    'With --dry-run, exit code 2 always means changes: failures exit with 1.';
  static override examples = examplesOf([
    ['Show what would change', '-f keys.yaml --dry-run'],
    [
      'Make the changes; the secret of each new key goes to a file named after the key',
      '-f keys.yaml --secrets-dir ./secrets',
    ],
    [
      'Store each new secret in Vault; if that fails, the key stays as before',
      `-f keys.yaml --exec 'vault kv put "secret/$SVC_API_KEY_NAME" key=-'`,
    ],
    ['Save the JSON Schema of the file for your editor', '--schema > keys.schema.json'],
    ['Also delete keys that an earlier apply created and the file no longer declares', '-f keys.yaml --prune --json'],
  ]);
  static override args = {
    file: Args.string({ description: 'File that declares the keys, instead of --file.', ignoreStdin: true }),
  };
  static override flags = {
    file: Flags.string({
      char: 'f',
      description: 'File that declares the keys, as YAML or JSON; - for stdin.',
      helpValue: '<path>',
    }),
    'dry-run': Flags.boolean({
      description: 'Only show what would change. Exits with 2 if there are changes.',
    }),
    adopt: Flags.boolean({
      description: 'Take over declared keys that another key created. Their secrets stay.',
    }),
    prune: Flags.boolean({
      description: 'Delete keys that an earlier apply created and the file no longer declares. Other keys stay.',
    }),
    'secrets-dir': Flags.string({
      description: 'Folder for new secrets, each in a file named after its key that only its owner can read.',
      helpValue: '<folder>',
    }),
    schema: Flags.boolean({
      description: 'Print the JSON Schema of the file, with the fields of installed plugins, for editors.',
    }),
    exec: Flags.string({
      description:
        'Shell command that gets each new secret on stdin. It runs once for each key, with SVC_API_KEY_NAME and ' +
        'SVC_API_KEY_ID in its environment. If it fails, the secret of that key is revoked.',
      helpValue: '<command>',
    }),
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Apply);
    if (flags.schema) {
      const given: Readonly<Record<string, unknown>> = flags;
      const others = Object.keys(Apply.flags).filter((flag) => flag !== 'schema');
      if (args.file !== undefined || others.some((flag) => given[flag] !== undefined))
        throw exclusiveFlags('--schema', 'what to apply');
      const { keysSchema } = await import('../../json-schema.ts');
      const schema = keysSchema();
      return this.print(schema, JSON.stringify(schema, null, 2));
    }
    if (args.file !== undefined && flags.file !== undefined)
      throw new CliError('USAGE', 'The file is given twice: as an argument and with --file. Leave one out.');
    const file = args.file ?? flags.file;
    const { prune, adopt, 'dry-run': dryRun, 'secrets-dir': secretsDir, exec: command } = flags;
    if (!file) throw new CliError('USAGE', 'The file is missing. Pass its path, or - for stdin.');
    if (secretsDir === '')
      throw new CliError(
        'USAGE',
        'The folder for the secrets is missing. Pass --secrets-dir <folder>, or leave it out.',
      );
    if (command !== undefined && command.trim() === '')
      throw new CliError('USAGE', 'The command for the secrets is empty. Pass --exec <command>, or leave it out.');
    if (command !== undefined && secretsDir !== undefined) throw exclusiveFlags('--secrets-dir', '--exec');
    const { applyKeys } = await import('../../cli/apply-keys.ts');
    let shown: object = {};
    const plan = await applyKeys({
      file,
      place: await this.place(flags),
      prune,
      adopt,
      dryRun,
      secretsDir,
      command,
      json: this.jsonEnabled(),
      print: async (json, text) => void (shown = await this.print(json, text)),
      printSecrets: async (json, text) => void (shown = await this.deliver(json, text)),
      note: (text) => this.terminal.note(text),
    });
    await warn(this.terminal, warningsOf(plan.confusable));
    if (dryRun && plan.changes.length > 0) process.exitCode = 2;
    return shown;
  }

  /** With --dry-run, exit code 2 means that there are changes: a failure must not look like that. */
  protected override exitAfter(exit: number): number {
    return this.argv.includes('--dry-run') ? 1 : exit;
  }
}
