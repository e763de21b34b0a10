import * as Flags from '@oclif/core/flags';
import { examplesOf, type FlagsOf } from '../../cli/base-command.ts';
import { additionsTo } from '../../features/index.ts';
import { addedFlags, exclusiveFlags, limitFlag, listFlags, readAfter, readLimit } from '../../cli/input/key-flags.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import {
  ALL_COLUMNS,
  COLUMN_NAMES,
  DEFAULT_COLUMNS,
  type KeyColumn,
  keyJson,
  type KeyJson,
  pickColumns,
} from '../../cli/views/key-view.ts';
import { openTable, titlesLeftOut } from '../../cli/output.ts';
import type { Client } from '../../keys/operations/index.ts';
import { formatCursor, type PageQuery } from '../../keys/service/index.ts';
import {
  DEFAULT_PAGE_SIZE,
  formatList,
  KeysError,
  MAX_PAGE_SIZE,
  printable,
  suggestion,
  yieldToEventLoop,
} from '../../keys/basics/index.ts';
import { KEY_SORTS, type KeyFilters, type KeySort, MAX_SELECTED } from '../../keys/lists/index.ts';

/** The exit code if any key was listed. */
const ANY = 1;
const SORTS = KEY_SORTS.map((sort) => sort.toLowerCase().replace('_', '-'));

/** @throws KeysError INPUT_INVALID */
function readSort(text: string): KeySort {
  const at = SORTS.indexOf(text.trim().toLowerCase().replace('_', '-'));
  if (at !== -1) return KEY_SORTS[at]!;
  const remedy = `${suggestion(text.trim(), SORTS)}Write one of ${formatList(SORTS)}.`;
  throw new KeysError('INPUT_INVALID', `Keys cannot be sorted by "${printable(text)}". ${remedy}`);
}

interface ListedKeys {
  keys: KeyJson[];
  /** True if there are more, without a cursor for them. */
  hasMore?: boolean;
  /** The cursor after which the next page starts; null on the last. */
  next: string | null;
}

/** The page of a query; with `all`, also the following ones, one by one. @throws KeysError INPUT_INVALID, STORE_… */
async function* listPages(open: Client, query: PageQuery, all: boolean): AsyncGenerator<ListedKeys> {
  if (!all) {
    yield await readPage(open, query);
    return;
  }
  let { after } = query;
  do {
    const page = await readPage(open, { ...query, first: MAX_PAGE_SIZE, after });
    yield page;
    // Memory of a page is only released after a turn of the event loop.
    await yieldToEventLoop();
    after = page.next;
  } while (after !== null);
}

/** The keys in another order, as many as requested. @throws KeysError INPUT_INVALID, STORE_… */
async function* listSorted(
  open: Client,
  { first, all, ...query }: KeyFilters & { first: number; all: boolean; sort: KeySort },
): AsyncGenerator<ListedKeys> {
  for (let offset = 0; offset < first;) {
    const size = Math.min(first - offset, MAX_PAGE_SIZE);
    const { keys, total, isSorted, ...page } = await open.apiKeyList({
      query: { ...query, first: size, offset, descending: false },
    });
    if (!isSorted || (all && (page.hasMore || total > MAX_SELECTED)))
      throw new KeysError('INPUT_INVALID', `More than ${MAX_SELECTED} keys cannot be sorted. Select fewer of them.`);
    offset += keys.length;
    const isLast = keys.length < size || offset >= first;
    yield { keys: keys.map(keyJson), next: null, hasMore: isLast && (page.hasMore || offset < total) };
    if (isLast) return;
  }
}

async function readPage(open: Client, query: PageQuery): Promise<ListedKeys> {
  const { keys, hasNextPage } = await open.apiKeys({ query });
  const last = keys.at(-1);
  return { keys: keys.map(keyJson), next: hasNextPage && last ? formatCursor(last.apiKey) : null };
}

const ADDITIONS = additionsTo('apikey:list');

export default class List extends KeyCommand {
  static override group = 'Keys';
  static override aliases = ['apikey:ls'];
  static override summary = 'List API keys, oldest first.';
  static override description = `A terminal shows a table as wide as the terminal, with one line for each key and relative \
times. Otherwise, each key is a whole line, with times in RFC 3339 format and tabs between \
NAME STATUS ROLES PERMISSIONS PREFIX CREATED EXPIRES LAST-USED USES ROTATION. Secrets are never shown.`;
  static override examples = examplesOf([
    ['List the keys with full access', '--roles ADMIN'],
    ['List the names of the expired keys', '--all --status expired | cut -f 1'],
    ['List when keys expire, and their grants', '--columns name,expires,grants'],
    ['List the keys of a person, with their child keys', '--owner "Ada Lovelace"'],
    ['Fail if a key expires within two weeks', '--expires-within 14d --exit-code'],
    ['List unused keys, the longest unused first', '--unused-for 90d --sort last-used --all'],
    ['List the first ten, as JSON', '--limit 10 --json'],
  ]);
  static override flags = {
    ...listFlags,
    limit: limitFlag('keys'),
    after: Flags.string({
      description: 'Cursor to continue after, as given by the previous page.',
      helpValue: '<cursor>',
    }),
    all: Flags.boolean({ description: 'List all keys, not one page of them.' }),
    sort: Flags.string({
      description:
        `Sort by: ${SORTS.join(', ')}. Keys without a value come last. ` +
        `Sorting by name, or with --all, works for at most ${MAX_SELECTED} keys.`,
      helpValue: '<field>',
    }),
    'exit-code': Flags.boolean({ description: 'Exit with 1 if any key matches, and with 0 if none does.' }),
    wide: Flags.boolean({
      description: 'On a terminal, show all columns, as in a pipe, without shortening: long lines wrap.',
    }),
    columns: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
      description: `Only these columns, comma-separated, in this order: ${COLUMN_NAMES.join(', ')}.`,
      helpValue: '<column,…>',
    }),
    ...addedFlags(ADDITIONS),
  };

  /** @returns the keys; undefined for a table of all keys, which could be too many to keep */
  async run(): Promise<object | undefined> {
    const { flags } = await this.parse(List);
    const added = await this.runAddition(ADDITIONS, flags);
    if (added) return added;
    const columns = this.columnsOf(flags);
    if (flags.all && flags.limit !== undefined) throw exclusiveFlags('--all', '--limit');
    if (flags.sort !== undefined && flags.after !== undefined) throw exclusiveFlags('--sort', '--after');
    const { all } = flags;
    const sort = flags.sort === undefined ? undefined : readSort(flags.sort);
    const [first, after] = [readLimit(flags.limit, 'keys'), readAfter(flags.after)];
    return this.withKeys(flags, async (open) => {
      const filters = await this.filters(open, flags);
      const most = all ? MAX_SELECTED : (first ?? DEFAULT_PAGE_SIZE);
      const pages = this.noting(
        sort === undefined
          ? listPages(open, { ...filters, first, after }, all)
          : listSorted(open, { ...filters, first: most, all, sort }),
        flags['exit-code'],
      );
      if (this.jsonEnabled()) return this.printJson(pages);
      const last = await this.printTable(pages, columns, flags.wide);
      if (flags.columns) await this.noteLeftOut(columns);
      return all ? undefined : last;
    });
  }

  /** @throws CliError USAGE */
  private columnsOf({ columns, wide }: FlagsOf<typeof List>): readonly KeyColumn[] {
    if (this.jsonEnabled() && (columns ?? wide)) throw exclusiveFlags(columns ? '--columns' : '--wide', '--json');
    if (columns && wide) throw exclusiveFlags('--columns', '--wide');
    if (columns) return pickColumns(columns);
    if (!this.terminal.isTerminal) return ALL_COLUMNS;
    return wide ? pickColumns(ALL_COLUMNS.map(({ name }) => name)) : DEFAULT_COLUMNS;
  }

  /** Sets the exit code if any key was listed. */
  private async *noting(pages: AsyncIterable<ListedKeys>, isToldByExit: boolean): AsyncGenerator<ListedKeys> {
    for await (const page of pages) {
      if (isToldByExit && page.keys.length > 0) process.exitCode = ANY;
      yield page;
    }
  }

  private async printJson(pages: AsyncIterable<ListedKeys>): Promise<object> {
    const all: ListedKeys = { keys: [], next: null };
    for await (const { keys, next } of pages) {
      all.keys.push(...keys);
      all.next = next;
    }
    return this.print(all, undefined);
  }

  /** Tells the user about chosen columns that do not fit. */
  private async noteLeftOut(columns: readonly KeyColumn[]): Promise<void> {
    if (!this.terminal.isTerminal) return;
    const titles = titlesLeftOut(columns, this.terminal.columns);
    if (titles.length === 0) return;
    await this.terminal.note(`The terminal is too narrow for ${formatList(titles)}. Pick fewer columns, or widen it.`);
  }

  /** @returns the last page */
  private async printTable(
    pages: AsyncIterable<ListedKeys>,
    columns: readonly KeyColumn[],
    isWide = false,
  ): Promise<object | undefined> {
    const { isTerminal, columns: width } = this.terminal;
    const table = await openTable(columns, { isTerminal, columns: isWide ? Number.POSITIVE_INFINITY : width });
    const cell = (key: KeyJson) => (column: KeyColumn) =>
      (this.terminal.isTerminal ? column.shown?.(key) : undefined) ?? column.text(key);
    let last: ListedKeys | undefined;
    for await (const page of pages) {
      if (!last && page.keys.length === 0) await this.terminal.note('No API keys found.');
      if (page.keys.length > 0) await this.write(`${table(page.keys.map((key) => columns.map(cell(key))))}\n`);
      last = page;
    }
    if (last?.hasMore) await this.terminal.note('More keys follow: pass --all, or a higher --limit.');
    if (last?.next) await this.terminal.note(`More keys follow: pass --all, or --after ${last.next}`);
    return last;
  }
}
