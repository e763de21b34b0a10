import { password } from '@inquirer/prompts';
import { ON_STDERR, orCancelled } from './prompt.ts';

/** Asks for a secret without echoing it. @throws CliError CANCELLED */
export function askForSecret(): Promise<string> {
  return orCancelled(() => password({ message: 'Secret' }, ON_STDERR));
}
