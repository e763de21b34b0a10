import { printable } from '../../keys/basics/index.ts';
import { CliError } from '../errors.ts';
import { cancelled, type Prompts } from './prompt.ts';

/**
 * Asks questions: by lists that are drawn anew, or, on a terminal that can't do that and where it is asked for, line by
 * line.
 * @throws CliError CANCELLED on Ctrl-C, or when the terminal is closed; nothing has changed by then
 */
export async function withPrompts<Answer>(ask: (prompts: Prompts) => Promise<Answer>): Promise<Answer> {
  const prompts = isPlain(process.env)
    ? (await import('./plain-prompts.ts')).PLAIN_PROMPTS
    : (await import('./rich-prompts.ts')).RICH_PROMPTS;
  try {
    return await ask(prompts);
  } catch (error) {
    if (error instanceof Error && /^(Exit|Abort|Cancel)PromptError$/.test(error.name)) throw cancelled();
    throw error;
  }
}

/** @throws CliError USAGE */
function isPlain(env: NodeJS.ProcessEnv): boolean {
  const { SVC_API_PROMPTS: wanted, TERM: terminal } = env;
  if (!wanted) return terminal === 'dumb';
  if (wanted === 'plain' || wanted === 'rich') return wanted === 'plain';
  throw new CliError('USAGE', `SVC_API_PROMPTS is "${printable(wanted)}". Set it to plain or rich, or unset it.`);
}

/** Asks whether to go on. @throws CliError CANCELLED on Ctrl-C, or if the answer is No */
export function confirmOrCancel(question: string): Promise<void> {
  return withPrompts(async (prompts) => {
    if (!(await prompts.confirm(question))) throw cancelled();
  });
}
