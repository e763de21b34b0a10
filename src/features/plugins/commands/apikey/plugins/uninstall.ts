import * as Args from '@oclif/core/args';
import { examplesOf } from '../../../../../cli/base-command.ts';
import { PluginCommand } from '../../../cli/plugin-command.ts';

export default class Uninstall extends PluginCommand {
  static override group = 'Program';
  static override isAtTop = true;
  static override summary = 'Uninstall a plugin.';
  static override description =
    'Values of its fields stay in the key store, and are available again when you reinstall it. ' +
    'Remove its sections from svc-api.yaml: otherwise, commands refuse the file.';
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
