import * as Args from '@oclif/core/args';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import { KeysError } from '../../keys/errors.ts';
import { readUserCode } from '../../keys/requests/codes.ts';
import type { ConsentRequest } from '../../keys/requests/consent-request.ts';
import { printable } from '../../keys/text.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { CliError } from '../errors.ts';
import { BaseCommand } from '../base-command.ts';
import { KeyCommand } from '../manage/key-command.ts';
import { hasFlag } from '../output.ts';
import { hiddenServerFlags } from '../remote/place-flags.ts';
import { consentText } from '../views/consent-view.ts';

/** The code as an argument. Without `ignoreStdin`, oclif would read a missing one from stdin. */
export const codeArg = (description: string) => ({
  code: Args.string({ description, required: true, ignoreStdin: true }),
});

/** Where codes are tried. */
const TERMINAL = 'terminal';

/** What commands about requests of applications share. */
export abstract class ConsentCommand extends KeyCommand {
  static override baseFlags = { ...BaseCommand.baseFlags, ...hiddenServerFlags };

  /** The request that waits for a decision, by its code. @throws KeysError NOT_FOUND, REQUEST_DECIDED */
  protected findByCode(keys: OpenKeys, userCode: string): Promise<ConsentRequest> {
    return keys.consent.show({ userCode, source: TERMINAL });
  }

  /** The open request, by its code or by its id. @throws KeysError NOT_FOUND, REQUEST_DECIDED */
  protected async findOpen(keys: OpenKeys, text: string): Promise<ConsentRequest> {
    if (readUserCode(text) !== undefined) return keys.consent.findOpen({ userCode: text, source: TERMINAL });
    const open = await keys.consent.list(Number.MAX_SAFE_INTEGER, OPERATOR);
    const request = open.find(({ id }) => id === text);
    if (request) return request;
    throw new KeysError('NOT_FOUND', `No application waits with the code or id "${printable(text)}".`);
  }

  /** Shows a request, and asks whether to decide so. @throws CliError CANCELLED, USAGE where nobody can be asked */
  protected async confirm(request: ConsentRequest, question: string): Promise<void> {
    if (hasFlag(this.argv, '--yes')) return;
    if (!this.interactive)
      throw new CliError(
        'USAGE',
        'Pass --yes to decide: you can only be asked on a terminal, without --json and --no-input.',
      );
    await this.terminal.note(consentText(request));
    const { confirmConsent } = await import('../prompts/confirm-consent.ts');
    await confirmConsent(question);
  }
}
