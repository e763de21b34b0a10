import * as Args from '@oclif/core/args';
import { BaseCommand, examplesOf } from '../../../../../cli/base-command.ts';

export default class Explain extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Explain which rule of federation a token meets, or what it lacks for each.';
  static override description =
    'The token is verified by the keys of its issuer, which is asked for them; it is sent to nobody, and never ' +
    'printed. Whether it was used before is not looked at. Exits with 0 if a rule is met, and otherwise with 1.';
  static override examples = examplesOf([
    ['See what the token of a pipeline lacks', './token'],
    ['Pipe it', '- --json < ./token'],
  ]);
  static override args = {
    file: Args.string({ description: 'File with the token; - for stdin.', required: true, ignoreStdin: true }),
  };

  async run(): Promise<object> {
    const { args } = await this.parse(Explain);
    const { explainToken } = await import('../../../cli/federation.ts');
    const { json, text } = await explainToken(this.config, this.configFile, args.file);
    if (json.rule === null) process.exitCode = 1;
    return this.printLines(json, text);
  }
}
