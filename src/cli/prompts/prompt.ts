import { CliError } from '../errors.ts';

/** Prompts go to stderr: stdout is for the secret alone. */
export const ON_STDERR = { output: process.stderr } as const;

/** Runs prompts. @throws CliError CANCELLED on Ctrl-C, or when the terminal is closed; nothing has changed by then */
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

/** The result for a prompt's `validate`: true, or what is wrong. */
export function verdict(issue: { message: string } | undefined): true | string {
  return issue?.message ?? true;
}
