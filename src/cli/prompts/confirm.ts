import { confirm } from '@inquirer/prompts';
import { cancelled, ON_STDERR, orCancelled } from './prompt.ts';

/** Asks whether to go on. @throws CliError CANCELLED on Ctrl-C, or if the answer is No */
export function confirmOrCancel(question: string): Promise<void> {
  return orCancelled(async () => {
    if (!(await confirm({ message: question, default: false }, ON_STDERR))) throw cancelled();
  });
}
