import * as Args from '@oclif/core/args';
import { examplesOf } from '../../../cli/base-command.ts';
import { PluginCommand } from '../../../cli/plugins/plugin-command.ts';

export default class Uninstall extends PluginCommand {
  static override summary = 'Uninstall a plugin.';
  static override description =
    'What it has stored with keys stays in the key store, and is there again when the plugin is.';
  static override examples = examplesOf([['Uninstall a plugin', 'svc-api-team']]);
  static override args = {
    plugin: Args.string({ description: 'The name of the plugin.', required: true, ignoreStdin: true }),
  };

  async run(): Promise<void> {
    const { args } = await this.parse(Uninstall);
    await this.installed.uninstall(args.plugin);
    await this.write(`Uninstalled ${args.plugin}.\n`);
  }
}
