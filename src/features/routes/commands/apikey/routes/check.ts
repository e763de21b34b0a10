import { examplesOf, BaseCommand } from '../../../../../cli/base-command.ts';

export default class Check extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override topic = 'Check routes, and explain what requests require.';
  static override summary = 'Check the routes of svc-api.yaml and their expectations.';
  static override description =
    'Exits with 0 if a server would accept the file, otherwise with 1. Lists routes that can never match.';
  static override examples = examplesOf([
    ['Check the configuration', ''],
    ['Check another file', '--config ./new.yaml'],
  ]);

  async run(): Promise<object> {
    await this.parse(Check);
    const { checkRoutes, readDeclaredRoutes } = await import('../../../cli/routes.ts');
    const { json, text } = await checkRoutes(await readDeclaredRoutes(this.config, this.configFile));
    return this.printLines(json, text);
  }

  protected override exitAfter(): number {
    return 1;
  }
}
