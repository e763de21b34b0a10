import { type ErrorCode, KeysError } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import { API_KEY_COLUMNS, type ApiKeyTable, driverCodeOf, readStoredKey, rowOf } from '../../store/index.ts';
import type { PreparedStatement, PrivateDatabase } from '../../store/sqlite/database.ts';
import type { ChildLine, ImportSpool, KeyLine, LineChain, LineReport, LineValue, UniqueField } from './import.ts';
import type { GeneratedField, ImportLine, ImportProblem, ImportWarning } from './read-import.ts';

/** Rows of a page. */
const PAGE_ROWS = 1000;
/** Cache of the file, in KiB. */
const CACHE_KIB = 4 * 1024;

const COLUMNS = { name: 'name', digest: 'digest', publicId: 'public_id', id: 'id' } as const;
const KEY_LISTS = API_KEY_COLUMNS.join(', ');
/** A line without a key has no digest. */
const HAS_KEY = '(digest is not null)';
/** Selects lines whose key is not in the store yet. */
const IS_OPEN = '(line not in (select line from unchanged))';

interface Remark {
  kind: 'error' | 'warning';
  code: string;
  message: string;
}

type LineRow = ApiKeyTable & { line: number; generated: string };

function keyLineOf({ line, generated, ...row }: LineRow): KeyLine {
  return { line, key: readStoredKey(row), generated: JSON.parse(generated) as GeneratedField[] };
}

/** @throws KeysError STORE_FULL where the temporary folder has no room for what work writes */
function inRoom(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    const code = driverCodeOf(error);
    if (!/^SQLITE_(?:FULL|IOERR|CANTOPEN)/.test(code)) throw error;
    throw new KeysError(
      'STORE_FULL',
      `The temporary folder has no room for the import (${code}). Set TMPDIR to a folder that has.`,
      { cause: error },
    );
  }
}

/**
 * Lines in an unnamed file, which no other process can open and whose space is freed when this process ends. It
 * contains digests but no secrets.
 */
export class ImportSpoolFile implements ImportSpool {
  readonly #driver: PrivateDatabase;
  readonly #insert: PreparedStatement;
  readonly #note: PreparedStatement;
  #remarks = 0;
  #imported = { count: 0, upTo: 0 };

  /** @param driver an empty database without a file */
  constructor(driver: PrivateDatabase) {
    this.#driver = driver;
    driver.pragma(`cache_size = ${-CACHE_KIB}`);
    driver.exec(`create table lines (line integer primary key, generated text,
        length integer not null default 1, in_store integer not null default 0, ${KEY_LISTS});
      create table unchanged (line integer primary key, id text, public_id text);
      create table remarks (line integer, number integer, kind text, code text, message text,
        primary key (line, number)) without rowid;
      begin`);
    const places = API_KEY_COLUMNS.map(() => '?').join(', ');
    this.#insert = driver.prepare(`insert into lines (line, generated, ${KEY_LISTS}) values (?, ?, ${places})`);
    this.#note = driver.prepare('insert into remarks values (?, ?, ?, ?, ?)');
  }

  add(lines: readonly ImportLine[]): void {
    inRoom(() => this.#add(lines));
  }

  #add(lines: readonly ImportLine[]): void {
    for (const { line, name, id = null, key, generated = [], errors, warnings } of lines) {
      const row: Partial<ApiKeyTable> = key ? rowOf(key) : ({ name, id } as Partial<ApiKeyTable>);
      this.#insert.run(line, JSON.stringify(generated), ...API_KEY_COLUMNS.map((column) => row[column] ?? null));
      for (const error of errors) this.note('error', line, error);
      for (const warning of warnings) this.note('warning', line, warning);
    }
  }

  complete(): void {
    inRoom(() => this.#complete());
  }

  #complete(): void {
    // With all that is read in its order: rows are long.
    for (const columns of ['name', 'digest', 'public_id', 'id', 'name_skeleton, name'])
      this.#driver.exec(`create index "lines_by_${columns}" on lines (${columns}) where ${HAS_KEY}`);
    this.#driver.exec(`create index lines_without_keys on lines (id) where not ${HAS_KEY};
      create index lines_by_creator on lines (created_by) where created_by is not null`);
  }

  setUnchanged(line: number, { id, publicId }: ApiKey): void {
    inRoom(() => this.#driver.prepare('insert into unchanged values (?, ?, ?)').run(line, id, publicId));
  }

  setImported(count: number, upTo: number): void {
    this.#imported = { count: this.#imported.count + count, upTo };
  }

  counts(): ReturnType<ImportSpool['counts']> {
    const { total, unchanged, failed } = this.#get(`select (select count(*) from lines) as total,
      (select count(*) from unchanged) as unchanged,
      (select count(distinct line) from remarks where kind = 'error') as failed`) as Record<string, number>;
    return { total: total!, imported: this.#imported.count, unchanged: unchanged!, failed: failed! };
  }

  codes(): ErrorCode[] {
    return this.#driver
      .prepare<{ code: ErrorCode }>(
        "select code from remarks where kind = 'error' group by code order by min(line), min(number)",
      )
      .all()
      .map(({ code }) => code);
  }

  *reports(): Generator<LineReport> {
    const remarks = this.#driver.prepare<Remark & { line: number }>(
      'select * from remarks where line >= ? and line <= ? order by line, number',
    );
    const unchanged = this.#driver.prepare<Pick<LineRow, 'line' | 'id' | 'public_id'>>(
      'select * from unchanged where line >= ? and line <= ?',
    );
    for (const page of this.#pages<Pick<LineRow, 'line' | 'name' | 'id' | 'public_id'>>('name, id, public_id')) {
      const held = new Map(unchanged.all(page[0]!.line, page.at(-1)!.line).map((row) => [row.line, row]));
      const found = Map.groupBy(remarks.all(page[0]!.line, page.at(-1)!.line), ({ line }) => line);
      for (const { line, name, ...made } of page) {
        const of = (wanted: Remark['kind']) =>
          (found.get(line) ?? []).flatMap(({ kind, code, message }) => (kind === wanted ? { code, message } : []));
        const errors = of('error') as ImportProblem[];
        const status =
          errors.length > 0
            ? 'failed'
            : held.has(line)
              ? 'unchanged'
              : line <= this.#imported.upTo
                ? 'imported'
                : 'not imported';
        const key = status === 'imported' ? made : held.get(line);
        yield {
          line,
          status,
          name,
          id: key?.id ?? null,
          prefix: key ? prefixOf(key.public_id) : null,
          errors,
          warnings: of('warning') as ImportWarning[],
        };
      }
    }
  }

  *values(field: UniqueField): Generator<LineValue[]> {
    yield* this.#valuesBy(COLUMNS[field], COLUMNS[field]);
  }

  *names(): Generator<LineValue[]> {
    let alike: LineValue[] = [];
    let skeleton: string | undefined;
    for (const page of this.#valuesBy('name_skeleton', 'name')) {
      const last = page.at(-1)!.order;
      // The next page may continue the last group.
      const rest = page.filter(({ order }) => order === last);
      if (last !== skeleton) {
        yield [...alike, ...page.slice(0, -rest.length)];
        alike = [];
      }
      skeleton = last;
      alike.push(...rest);
    }
    yield alike;
  }

  *#valuesBy(order: string, value: string): Generator<(LineValue & { order: string })[]> {
    const statement = this.#driver.prepare<LineValue & { order: string }>(
      `select line, ${order} as "order", ${value} as value from lines
        where ${HAS_KEY} and ${IS_OPEN} and (${order}, line) > (?, ?) order by ${order}, line limit ${PAGE_ROWS}`,
    );
    let last: { line: number; order: string } | undefined = { line: 0, order: '' };
    while (last) {
      const page = statement.all(last.order, last.line);
      if (page.length > 0) yield page;
      last = page.at(-1);
    }
  }

  *children(order: 'line' | 'creator'): Generator<ChildLine[]> {
    const column = order === 'line' ? "''" : 'created_by';
    const statement = this.#driver.prepare<LineRow>(
      `select * from lines where ${HAS_KEY} and ${IS_OPEN} and created_by is not null and (${column}, line) > (?, ?)
        order by ${column}, line limit ${PAGE_ROWS}`,
    );
    let after: [string, number] | undefined = ['', 0];
    while (after) {
      const page = statement.all(...after);
      if (page.length > 0) yield page.map(keyLineOf);
      const last = page.at(-1);
      after = last && [order === 'line' ? '' : last.created_by!, last.line];
    }
  }

  chainOf(id: string, before: number): LineChain | undefined {
    const found = this.#get(
      `select * from (
          select line, length, in_store from lines where id = @id and line < @before and ${HAS_KEY}
          union all select line, length, in_store from lines where id = @id and line < @before and not ${HAS_KEY}
        ) order by line desc limit 1`,
      { id, before },
    ) as { length: number; in_store: number } | undefined;
    return found && { length: found.length, isInStore: found.in_store === 1 };
  }

  setChain(line: number, { length, isInStore }: LineChain): void {
    this.#driver
      .prepare('update lines set length = ?, in_store = ? where line = ?')
      .run(length, Number(isInStore), line);
  }

  note(kind: 'error' | 'warning', line: number, { code, message }: ImportProblem | ImportWarning): void {
    this.#remarks += 1;
    inRoom(() => this.#note.run(line, this.#remarks, kind, code, message));
  }

  keyOn(line: number): KeyLine {
    return keyLineOf(this.#get('select * from lines where line = ?', line) as LineRow);
  }

  keysAfter(line: number, limit: number): KeyLine[] {
    const keys = `select * from lines where line > ? and ${HAS_KEY} and ${IS_OPEN} order by line limit ?`;
    return this.#driver.prepare<LineRow>(keys).all(line, limit).map(keyLineOf);
  }

  *#pages<Read extends { line: number }>(columns: string): Generator<Read[]> {
    const statement = this.#driver.prepare<Read>(
      `select line, ${columns} from lines where line > ? order by line limit ${PAGE_ROWS}`,
    );
    for (let page = statement.all(0); page.length > 0; page = statement.all(page.at(-1)!.line)) yield page;
  }

  #get(sql: string, ...values: unknown[]): unknown {
    return this.#driver.prepare(sql).get(...values);
  }

  close(): void {
    this.#driver.close();
  }
}
