import { examplesOf } from '../../../cli/base-command.ts';
import { PluginCommand } from '../../../cli/plugin-command.ts';

export default class Plugins extends PluginCommand {
  static override group = 'Program';
  static override isAtTop = true;
  static override summary = 'List the plugins that are installed.';
  static override description =
    'Plugins add fields of keys, and commands. Each is a package, and is trusted like the program.';
  static override examples = examplesOf([['All plugins, with their versions', '']]);

  async run(): Promise<void> {
    await this.parse(Plugins);
    const plugins = this.installed.list();
    const lines = plugins.map(({ name, version }) => `${name} ${version ?? '(its files are gone)'}`);
    await this.write(`${lines.join('\n') || 'No plugins installed.'}\n`);
  }
}
