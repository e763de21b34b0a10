import { examplesOf } from '../../../../../cli/base-command.ts';
import { KeyCommand } from '../../../../../cli/manage/key-command.ts';

export default class Observed extends KeyCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'List requests that observing routes would refuse.';
  static override description =
    'A route with "observe: true" allows requests that it would refuse, and records them in the audit log: each key with ' +
    'the permissions it lacks, and requests without a valid key. Repeats within ten minutes are counted.';
  static override examples = examplesOf([['Show what would change without "observe"', '']]);

  async run(): Promise<object> {
    const { flags } = await this.parse(Observed);
    const { findObserved, observedView, readDeclaredRoutes } = await import('../../../cli/routes.ts');
    const declared = await readDeclaredRoutes(this.config, this.configFile);
    return this.withKeys(flags, async (keys) => {
      const observing = await findObserved(declared, (request, place) => keys.auditLog({ request, place }));
      const { json, text } = await observedView(declared.file, observing);
      return this.printLines(json, text);
    });
  }
}
