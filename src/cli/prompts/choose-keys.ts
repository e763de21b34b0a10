import type { KeyFields } from '../../keys/key/api-key.ts';
import { printable } from '../../keys/text.ts';
import { formatCount } from '../views/table.ts';
import { relativeTime } from '../../keys/relative-time.ts';
import { cancelled, type Choice, type FoundChoices } from './prompt.ts';
import { withPrompts } from './with-prompts.ts';

/** A page of keys. */
export interface Page {
  keys: readonly KeyFields[];
  hasNextPage: boolean;
}

/**
 * Lets the user search for keys and choose some of them, and asks whether to delete them.
 * @param page the keys to choose from before anything is typed
 * @param find the keys that match what was typed
 * @param assumesYes whether the question is answered with yes
 * @returns the ids of the chosen keys, which may be none
 * @throws CliError CANCELLED on Ctrl-C, or if the answer is No
 */
export function chooseKeys(
  page: Page,
  find: (search: string) => Promise<Page>,
  assumesYes: boolean,
): Promise<string[]> {
  return withPrompts(async (prompts) => {
    const search = async (term: string) => toChoices(await find(term));
    const chosen = await prompts.searchMany({ message: 'API keys to delete', found: toChoices(page), search });
    const ids = chosen.map(({ id }) => id);
    if (chosen.length === 0 || assumesYes) return ids;
    const what =
      chosen.length === 1
        ? `"${chosen[0]!.name}" and all keys that it created`
        : `these ${chosen.length} API keys and all keys that they created`;
    if (!(await prompts.confirm(`Delete ${what}? They stop working at once`))) throw cancelled();
    return ids;
  });
}

function toChoices({ keys, hasNextPage }: Page): FoundChoices {
  return { choices: keys.map(toChoice), hasMore: hasNextPage };
}

function toChoice({ id, name, roles, permissions, createdAt }: KeyFields): Choice {
  const count = permissions.length;
  const grants = [...roles, ...(count > 0 ? [formatCount(count, 'permission', 'permissions')] : [])].join(', ');
  return { id, name: printable(name, 100), details: `${grants}; ${relativeTime(createdAt)}` };
}
