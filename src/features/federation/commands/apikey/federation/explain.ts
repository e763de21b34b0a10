import * as Args from '@oclif/core/args';
import { BaseCommand, examplesOf } from '../../../../../cli/base-command.ts';

export default class Explain extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Explain which federation rule a token meets, or why it meets none.';
  static override description =
    "Verifies the token with its issuer's keys, which it downloads. The token itself is never sent or printed. Does not " +
    'check whether it was used before. Exits with 0 if a rule is met, otherwise with 1.';
  static override examples = examplesOf([
    ['Explain why the token of a pipeline is refused', './token'],
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
