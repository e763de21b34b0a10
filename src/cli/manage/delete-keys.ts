import type { Deleted, KeyAdministration, KeyName } from '../../keys/administration.ts';
import { assertValid } from '../../keys/errors.ts';
import { MAX_PAGE_SIZE } from '../../keys/page.ts';
import { validateName, normalizeName } from '../../keys/key/name.ts';
import { CliError } from '../errors.ts';
import type { Page } from '../prompts/with-prompts.ts';
import type { KeysPlace } from '../with-keys.ts';

export interface DeleteOptions {
  name: string | undefined;
  place: KeysPlace;
  /** Whether the keys may be chosen from a list. */
  interactive: boolean;
  /** Whether confirmations are answered with yes. */
  assumesYes: boolean;
  /** With `--json`, a store without keys is an answer, not a usage error. */
  json: boolean;
}

/** What was deleted, or why nothing was: no such key, nothing to choose from, or nothing chosen. */
export type Deletion = { deleted: Deleted } | { missing: string } | { nothing: string };

/** Deletes the named key, or the keys chosen at the terminal, each with the keys that it created. */
export async function runDelete({ name, place, json, ...asking }: DeleteOptions): Promise<Deletion> {
  if (name !== undefined) assertValid([validateName(name)].filter((issue) => issue !== undefined));
  if (name === undefined && !asking.interactive && !json) throw nobodyToAsk();
  const keys = await place.open({ ifMissing: 'empty', grants: 'none' });
  try {
    return name === undefined ? await deleteChosen(keys, asking) : await deleteNamed(keys, normalizeName(name));
  } finally {
    await keys.close();
  }
}

async function deleteNamed(keys: KeyAdministration, name: string): Promise<Deletion> {
  const found = await keys.find(name);
  const deleted = found && (await keys.delete([found.apiKey.id]));
  if (deleted && deleted.keys.length > 0) return { deleted };
  // A mistyped path must not look as if the key were gone.
  if (!keys.exists) return { missing: `no API key is named "${name}": the key store ${keys.location} does not exist` };
  const { didYouMeanKey } = await import('../explain/did-you-mean.ts');
  const question = await didYouMeanKey(name, searchIn(keys));
  return { missing: `no API key is named "${name}"${question === undefined ? '' : `. ${question}`}` };
}

/** How many keys are looked at where a name is misspelled. */
export const MAX_LIKELY = 50;

/** Finds the first keys that contain a text. */
export function searchIn(keys: KeyAdministration): (text: string) => Promise<readonly KeyName[]> {
  return async (search) => (await keys.list({ first: MAX_LIKELY, search })).keys.map(({ apiKey }) => apiKey);
}

async function deleteChosen(
  keys: KeyAdministration,
  { interactive, assumesYes }: Pick<DeleteOptions, 'interactive' | 'assumesYes'>,
): Promise<Deletion> {
  const page = await searchByName(keys);
  if (page.keys.length === 0) return { nothing: `there are none in ${keys.location}` };
  if (!interactive) throw nobodyToAsk();
  const { chooseKeys } = await import('../prompts/with-prompts.ts');
  const ids = await chooseKeys(page, (search) => searchByName(keys, search), assumesYes);
  return ids.length === 0 ? { nothing: 'none was chosen' } : { deleted: await keys.delete(ids) };
}

/** The keys that match a search, or the first; the one with just that name comes first. */
async function searchByName(keys: KeyAdministration, search?: string): Promise<Page> {
  const page = await keys.list({ first: MAX_PAGE_SIZE, search });
  const found = page.keys.map(({ apiKey }) => apiKey);
  const named = search === undefined ? undefined : (await keys.find(search))?.apiKey;
  const { hasNextPage } = page;
  return { keys: named ? [named, ...found.filter(({ id }) => id !== named.id)] : found, hasNextPage };
}

function nobodyToAsk(): CliError {
  return new CliError(
    'USAGE',
    'The key to delete is missing. Pass --name <name>; ' +
      'keys can only be chosen on a terminal, without --json and --no-input.',
  );
}
