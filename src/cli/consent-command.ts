import * as Args from '@oclif/core/args';
import { CliError } from './errors.ts';
import { KeyCommand } from './manage/key-command.ts';
import { consentText } from './views/consent-view.ts';
import type { ConsentPlace, ConsentState } from '../keys/administration.ts';
import { readUserCode } from '../keys/requests/codes.ts';

/** The code as an argument. Without `ignoreStdin`, oclif would read a missing one from stdin. */
export const codeArg = (description: string) => ({
  code: Args.string({ description, required: true, ignoreStdin: true }),
});

/** What is typed for a request: its code, or else its id. */
export function placeOf(text: string): ConsentPlace {
  return readUserCode(text) === undefined ? { requestId: text } : { userCode: text };
}

/** What commands about requests of applications share. */
export abstract class ConsentCommand extends KeyCommand {
  /** Shows a request, and asks whether to decide so. @throws CliError CANCELLED, USAGE where nobody can be asked */
  protected async confirm(request: ConsentState, question: string): Promise<void> {
    if (this.assumesYes) return;
    if (!this.interactive)
      throw new CliError(
        'USAGE',
        'Pass --yes to decide: you can only be asked on a terminal, without --json and --no-input.',
      );
    await this.terminal.note(consentText(request));
    const { confirmOrCancel } = await import('./prompts/with-prompts.ts');
    await confirmOrCancel(question);
  }
}
