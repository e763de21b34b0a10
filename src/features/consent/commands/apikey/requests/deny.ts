import { examplesOf } from '../../../../../cli/base-command.ts';
import { codeArg, ConsentCommand, consentJson, placeOf } from '../../../cli/consent-command.ts';
import { consentOperations } from '../../../operations.ts';
import { CHANGES_MADE } from '../../../../../cli/errors.ts';
import { noInputFlag, yesFlag } from '../../../../../cli/input/key-flags.ts';

export default class Deny extends ConsentCommand {
  static override group = 'Applications';
  static override isAtTop = true;
  static override summary = "Deny an application's request for an API key.";
  static override description =
    'You can also deny an approved request, as long as the application has not fetched its key.';
  static override examples = examplesOf([['Deny the request of the application that shows this code', 'WDJB-MJHT']]);
  static override args = codeArg('The code that the application shows, or the id of its request.');
  static override flags = { yes: yesFlag, 'no-input': noInputFlag };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Deny);
    const place = placeOf(args.code);
    return this.withKeys(flags, async (keys) => {
      const shown = await keys.of(consentOperations).consentRequest({ place });
      await this.confirmDecision(shown, `Deny ${shown.client.name} an API key?`);
      const request = await keys.of(consentOperations).denyConsentRequest({ place });
      this.done = CHANGES_MADE;
      return this.print({ request: consentJson(request) }, `${request.client.name} gets no API key`);
    });
  }
}
