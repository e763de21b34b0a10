import { BaseCommand, FLAGS_WITHOUT_STORE } from '../../../cli/base-command.ts';
import { InstalledPlugins } from './installed.ts';

/** A command about plugins, which also runs if one of them is invalid. */
export abstract class PluginCommand extends BaseCommand {
  static override enableJsonFlag = false;
  static override baseFlags: (typeof BaseCommand)['baseFlags'] = FLAGS_WITHOUT_STORE;
  protected override readonly needsFeatures = false;

  protected get installed(): InstalledPlugins {
    return new InstalledPlugins(this.config);
  }
}
