import { checkbox, confirm } from '@inquirer/prompts';
import type { ApiKey } from '../../keys/key/api-key.ts';
import type { Page } from '../../keys/list.ts';
import { ageOf } from '../views/age.ts';
import { cancelled, ON_STDERR, orCancelled } from './prompt.ts';

/**
 * Lets the user choose keys, and asks whether to delete them.
 * @param assumesYes whether that is answered with yes
 * @returns the chosen keys, which may be none
 * @throws CliError CANCELLED on Ctrl-C, or if the answer is No
 */
export function chooseKeys({ keys, hasNextPage }: Page, assumesYes: boolean): Promise<ApiKey[]> {
  return orCancelled(async () => {
    const message = hasNextPage
      ? `API keys to delete (the oldest ${keys.length}; for others, pass --name)`
      : 'API keys to delete';
    const chosen = await checkbox(
      { message, choices: keys.map((key) => ({ value: key, name: describe(key), short: key.name })) },
      ON_STDERR,
    );
    if (chosen.length === 0 || assumesYes) return chosen;
    const what =
      chosen.length === 1
        ? `"${chosen[0]!.name}" and all keys that it created`
        : `these ${chosen.length} API keys and all keys that they created`;
    const sure = await confirm({ message: `Delete ${what}? They stop working at once`, default: false }, ON_STDERR);
    if (!sure) throw cancelled();
    return chosen;
  });
}

function describe(key: ApiKey): string {
  const count = key.permissions.length;
  const permissions = count > 0 ? [`${count} ${count === 1 ? 'permission' : 'permissions'}`] : [];
  const grants = [...key.roles, ...permissions].join(', ');
  return `${key.name} (${grants}; ${ageOf(key.createdAt)})`;
}
