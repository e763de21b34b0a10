import { CliError } from '../errors.ts';
import { DEFAULT_COLUMNS } from '../terminal.ts';

/** Prompts go to stderr: stdout is for the secret alone. */
export const ON_STDERR = { output: process.stderr } as const;

/** Options of lists in which several can be chosen: no key chooses all. */
export const ONE_BY_ONE = { shortcuts: { all: null, invert: null } } as const;

/** How many lines a prompt may take besides the choices of a list: its question, hints and notes, some wrapped. */
const LINES_AROUND_LIST = 7;

/** How many choices of a list fit the screen: what is higher than it can't be drawn again. */
export function listSize(): number {
  return Math.max(1, Math.min(7, screenHeight() - LINES_AROUND_LIST));
}

/** Whether there is no room for hints. */
export function isLowScreen(): boolean {
  return screenHeight() <= LINES_AROUND_LIST;
}

/** The width of the terminal that prompts are on, in columns. */
export function screenWidth(): number {
  return process.stderr.columns || DEFAULT_COLUMNS;
}

function screenHeight(): number {
  return process.stderr.rows || 24;
}

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
