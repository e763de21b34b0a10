import * as Args from '@oclif/core/args';
import { examplesOf } from '../../../../../cli/base-command.ts';
import { PluginCommand } from '../../../cli/plugin-command.ts';
import { warn } from '../../../../../cli/terminal.ts';

export default class Install extends PluginCommand {
  static override group = 'Program';
  static override isAtTop = true;
  static override summary = 'Install a plugin with npm.';
  static override description =
    'Runs npm in the data folder of the user. Installing a plugin again updates it. Its code runs with the rights of ' +
    'svc-api: install only packages that you trust.';
  static override examples = examplesOf([['Install a plugin from a folder, in its present state', './svc-api-team']]);
  static override args = {
    plugin: Args.string({
      description: 'A package, a URL, or a path such as ./svc-api-team.',
      required: true,
      ignoreStdin: true,
    }),
  };

  async run(): Promise<void> {
    const { args } = await this.parse(Install);
    const { name, version, warning } = await this.installed.install(args.plugin);
    await this.write(`Installed ${[name, version].join(' ').trim()}.\n`);
    if (warning !== undefined) await warn(this.terminal, [`Commands do not run yet. ${warning}`]);
  }
}
