import { examplesOf } from '../../../../../cli/base-command.ts';
import { codeArg, ConsentCommand, consentJson } from '../../../cli/consent-command.ts';
import { consentOperations } from '../../../operations.ts';
import { CHANGES_MADE } from '../../../../../cli/errors.ts';
import { grantFlags, noInputFlag, yesFlag } from '../../../../../cli/input/key-flags.ts';
import { refuseOver } from '../../../consent-request.ts';

export default class Approve extends ConsentCommand {
  static override group = 'Applications';
  static override isAtTop = true;
  static override summary = "Approve an application's request for an API key.";
  static override description =
    'Shows the request and asks you to confirm. --roles and --permissions approve only a part of it. The application ' +
    'fetches its key itself; the secret is not shown.';
  static override examples = examplesOf([
    ['Approve the request of the application that shows this code', 'WDJB-MJHT'],
    ['Approve only a part of a request, for a week', 'WDJB-MJHT --permissions GRAFANA:READ_ANY --expires-in 7d --yes'],
  ]);
  static override args = codeArg('The code that the application shows, such as WDJB-MJHT.');
  static override flags = { ...grantFlags, yes: yesFlag, 'no-input': noInputFlag };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Approve);
    const { roles, permissions, 'expires-in': expiresIn, 'expires-at': expiresAt } = flags;
    return this.withKeys(flags, async (keys) => {
      const shown = await keys.of(consentOperations).consentRequest({ place: { userCode: args.code } });
      refuseOver(shown);
      await this.confirmDecision(shown, `Give ${shown.client.name} an API key?`);
      const choice = { roles, permissions, expiresIn, expiresAt };
      const request = await keys.of(consentOperations).approveConsentRequest({ userCode: args.code, choice });
      this.done = CHANGES_MADE;
      const text = `${request.client.name} gets the API key "${request.approval!.keyName}"`;
      return this.print({ request: consentJson(request) }, text);
    });
  }
}
