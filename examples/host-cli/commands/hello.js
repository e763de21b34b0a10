import { Command } from '@oclif/core';

export default class Hello extends Command {
  static summary = 'Say hello: a command of the host itself.';

  async run() {
    await this.parse(Hello);
    this.log('Hello from acme');
  }
}
