import { Args, Command, Flags } from '@oclif/core';

export default class Hello extends Command {
  static description = 'Says hello.';
  static args = { person: Args.string({ description: 'Whom to greet.', required: true }) };
  static flags = { from: Flags.string({ description: 'Who greets.', default: 'oclif' }) };

  async run() {
    const { args, flags } = await this.parse(Hello);
    this.log(`hello ${args.person} from ${flags.from}`);
  }
}
