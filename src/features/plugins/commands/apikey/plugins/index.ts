import { examplesOf } from '../../../../../cli/base-command.ts';
import { PluginCommand } from '../../../cli/plugin-command.ts';

export default class Plugins extends PluginCommand {
  static override group = 'Program';
  static override isAtTop = true;
  static override summary = 'List the installed plugins.';
  static override description =
    'Plugins can add commands, and fields of keys. Each plugin is a package that runs with the rights of svc-api.';
  static override examples = examplesOf([['List all plugins, with their versions', '']]);

  async run(): Promise<void> {
    await this.parse(Plugins);
    const plugins = this.installed.list();
    const lines = plugins.map(({ name, version = '', isMissing }) =>
      `${name} ${isMissing ? '(its files are missing)' : version}`.trim(),
    );
    await this.write(`${lines.join('\n') || 'No plugins installed.'}\n`);
  }
}
