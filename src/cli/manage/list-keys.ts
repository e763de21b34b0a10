import type { KeyAdministration } from '../../keys/administration.ts';
import { cursorOf, type PageQuery } from '../../keys/list.ts';
import { MAX_PAGE_SIZE } from '../../keys/page.ts';
import { keyJson, type KeyJson } from '../views/key-view.ts';

/** A page of a list of keys. */
export interface ListedKeys {
  keys: KeyJson[];
  /** The cursor after which the next page starts; null on the last. */
  next: string | null;
}

/** The page of a query; with `all`, also those that follow, one by one. @throws KeysError INPUT_INVALID, STORE_… */
export async function* listPages(open: KeyAdministration, query: PageQuery, all: boolean): AsyncGenerator<ListedKeys> {
  if (!all) {
    yield await readPage(open, query);
    return;
  }
  let { after } = query;
  do {
    const page = await readPage(open, { ...query, first: MAX_PAGE_SIZE, after });
    yield page;
    after = page.next;
  } while (after !== null);
}

async function readPage(open: KeyAdministration, query: PageQuery): Promise<ListedKeys> {
  const { keys, hasNextPage } = await open.list(query);
  const last = keys.at(-1);
  return { keys: keys.map(keyJson), next: hasNextPage && last ? cursorOf(last.apiKey) : null };
}
