import { examplesOf } from '../../../../../cli/base-command.ts';
import { KeyCommand } from '../../../../../cli/manage/key-command.ts';

export default class Observed extends KeyCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'List what routes that observe would refuse.';
  static override description =
    'A route with "observe: true" lets pass what it would refuse, which servers note in the audit log: each key with ' +
    'what it lacks, and requests without a valid key. What comes again within ten minutes is counted.';
  static override examples = examplesOf([['See what would change without "observe"', '']]);

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
