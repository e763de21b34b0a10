import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../../cli/base-command.ts';
import { CliError } from '../../../../../cli/errors.ts';
import { KeyCommand } from '../../../../../cli/manage/key-command.ts';
import { hasFlag } from '../../../../../cli/output.ts';

export default class Check extends KeyCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override topic = 'Check routes, and print routes for known services.';
  static override summary = 'Check the routes of svc-api.yaml and their expectations.';
  static override description =
    'Exits with 0 if a server would accept the file, otherwise with 1. Lists routes that can never match.\n\nA route ' +
    'with "observe: true" allows requests that it would refuse, and records them in the audit log: each key with the ' +
    'permissions it lacks, and requests without a valid key. Repeats within ten minutes are counted. --observed ' +
    'lists these requests.';
  static override examples = examplesOf([
    ['Check the configuration', ''],
    ['Check another file', '--config ./new.yaml'],
    ['Show which requests would be refused without "observe"', '--observed'],
  ]);
  static override flags = {
    observed: Flags.boolean({
      description: 'List the requests that routes with "observe: true" would refuse, from the key store or --server.',
    }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Check);
    if (flags.server !== undefined && !flags.observed)
      throw new CliError('USAGE', '--server is only used with --observed. Leave it out, or pass both.');
    const { checkRoutes, declaredRoutes, findObserved, observedView } = await import('../../../cli/routes.ts');
    const declared = declaredRoutes(await this.loadConfig());
    if (!flags.observed) {
      const { json, text } = await checkRoutes(declared);
      return this.printLines(json, text);
    }
    return this.withKeys(flags, async (keys) => {
      const observing = await findObserved(declared, (request, place) => keys.auditLog({ request, place }));
      const { json, text } = await observedView(declared.file, observing);
      return this.printLines(json, text);
    });
  }

  protected override exitAfter(exit: number): number {
    return hasFlag(this.argv, '--observed') ? exit : 1;
  }
}
