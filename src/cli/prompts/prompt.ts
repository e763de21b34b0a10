import { CliError } from '../errors.ts';

/** Prompts are no output: stdout is for the secret alone. */
export const ON_STDERR = { output: process.stderr } as const;

/** Runs prompts; when the user ends one with Ctrl-C or the terminal goes away, nothing has been changed yet. */
export async function orCancelled<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Error && /^(Exit|Abort|Cancel)PromptError$/.test(error.name)) throw cancelled();
    throw error;
  }
}

export function cancelled(): CliError {
  return new CliError('CANCELLED', 'Cancelled: nothing was changed.');
}

/** What a prompt's `validate` answers: true, or what is wrong. */
export function verdict(issue: { message: string } | undefined): true | string {
  return issue?.message ?? true;
}
