import * as Args from '@oclif/core/args';
import { loadHelpClass } from '@oclif/core/help';
import { examplesOf, BaseCommand, FLAGS_WITHOUT_STORE } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import { formatList, printable } from '../../keys/basics/index.ts';

export default class ApiKeyHelp extends BaseCommand {
  static override enableJsonFlag = false;
  static override strict = false;
  static override baseFlags: (typeof BaseCommand)['baseFlags'] = FLAGS_WITHOUT_STORE;
  static override summary = 'Show help for a command, exit codes or environment variables.';
  static override examples = examplesOf([
    ['Show what exit codes mean', 'exit-codes'],
    ['Show the environment variables', 'environment'],
    ['Show how a key is rotated', 'rotate'],
  ]);
  static override args = {
    subject: Args.string({ description: 'A command, exit-codes or environment.', ignoreStdin: true }),
  };

  async run(): Promise<void> {
    const { argv } = await this.parse(ApiKeyHelp);
    const words = argv.map(String);
    const { HELP_TOPICS, topicNamed, topicText } = await import('../../cli/help/topics.ts');
    const topic = topicNamed(words[0] ?? '');
    if (topic && words.length > 1) {
      const { unexpectedArguments } = await import('../../cli/explain/present.ts');
      throw new CliError('USAGE', unexpectedArguments(words.slice(1)));
    }
    if (topic) return this.write(`${await topicText(topic, this.config)}\n`);
    const id = ['apikey', ...words].join(':');
    if (!this.config.findCommand(id)) {
      const topics = formatList(Object.keys(HELP_TOPICS));
      const remedy = `The topics are ${topics}. Leave out the argument to list all commands.`;
      throw new CliError('USAGE', `No help is available for "${printable(words.join(' '))}". ${remedy}`);
    }
    const HelpClass = await loadHelpClass(this.config);
    await new HelpClass(this.config, this.config.pjson.oclif.helpOptions).showHelp([id]);
  }
}
