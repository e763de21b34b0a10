import type { KeyFields } from '../../keys/key/index.ts';
import { printable, relativeTime } from '../../keys/basics/index.ts';
import { CliError } from '../errors.ts';
import { whileAsking } from '../idle.ts';
import { formatCount } from '../output.ts';
import { cancelled, type Choice, type FoundChoices, type Prompts } from './prompt.ts';

/**
 * Asks questions: with redrawn lists, or line by line if the terminal can't redraw or the user prefers that.
 * @throws CliError CANCELLED on Ctrl-C, or when the terminal is closed; nothing has changed by then
 */
export async function withPrompts<Answer>(ask: (prompts: Prompts) => Promise<Answer>): Promise<Answer> {
  const prompts = isPlain(process.env)
    ? (await import('./plain-prompts.ts')).PLAIN_PROMPTS
    : (await import('./rich-prompts.ts')).RICH_PROMPTS;
  try {
    return await whileAsking(() => ask(prompts));
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

/** Asks whether to continue. @throws CliError CANCELLED on Ctrl-C, or if the answer is No */
export function confirmOrCancel(question: string): Promise<void> {
  return withPrompts(async (prompts) => {
    if (!(await prompts.confirm(question))) throw cancelled();
  });
}

/** A page of keys. */
export interface Page {
  keys: readonly KeyFields[];
  hasNextPage: boolean;
}

/**
 * Lets the user search for keys and choose some of them, and asks whether to delete them.
 * @param page the keys before anything is typed
 * @param find the keys that match a typed text
 * @param assumesYes true to skip the confirmation
 * @returns the ids of the chosen keys, possibly none
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
