import { KeyCommand } from '../../cli/key-command.ts';
import { nameFlag } from '../../cli/key-flags.ts';

export default class Enable extends KeyCommand {
  static override summary = 'Switch an API key on again.';
  static override examples = [{ description: 'Let a key in again', command: '<%= config.bin %> apikey enable --name "CI deploy"' }];
  static override flags = { name: nameFlag };

  async run(): Promise<void> {
    const { flags } = await this.parse(Enable);
    await this.setEnabled(flags, true);
  }
}
