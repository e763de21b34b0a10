import { type AuditValues, auditValuesOf } from '../../keys/audit/index.ts';
import { type ErrorCode, KeysError } from '../../keys/basics/index.ts';
import type { StoredKey } from '../../keys/key/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import type {
  ChildLine,
  ImportLine,
  ImportProblem,
  ImportSpool,
  ImportWarning,
  LineChain,
  LineReport,
  LineValue,
  UniqueField,
} from '../../keys/transfer/index.ts';
import type { ImportedKey } from '../due-entries.ts';
import { driverCodeOf } from '../errors.ts';
import { openPrivateDatabase, type PreparedStatement } from './database.ts';
import { labelRowsOf } from '../insert-rows.ts';
import { apiKeyOf, computeNameSkeleton, readStoredKey, rowOf } from '../rows.ts';
import { API_KEY_COLUMNS, type ApiKeyTable } from '../tables.ts';

/** How many rows a page has. */
const PAGE_ROWS = 1000;
/** How much of the file is kept in memory, in KiB. */
const CACHE_KIB = 4 * 1024;

const COLUMNS = { name: 'name', digest: 'digest', publicId: 'public_id', id: 'id' } as const;
const KEY_LISTS = API_KEY_COLUMNS.join(', ');
/** A line without a key has no digest. */
const HAS_KEY = '(digest is not null)';

/** A key as it is inserted. */
export interface SpooledKey {
  line: number;
  id: string;
  /** See `dueHash`. */
  hash: string;
  /** The values of `API_KEY_COLUMNS`. */
  values: unknown[];
  /** See `labelRowsOf`. */
  labels: unknown[][];
}

interface Remark {
  kind: 'error' | 'warning';
  code: string;
  message: string;
}

type LineRow = ApiKeyTable & { line: number };
type SpooledRow = LineRow & { hash: string };

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
 * Lines in a file that has no name: nobody else can open it, and its space is free once this process ends, however. It
 * has digests, and no secrets.
 */
export class ImportSpoolFile implements ImportSpool {
  /** Of the import, and its last line, once it is prepared. */
  number = 0;
  lastLine = 0;
  /** Whether keys were inserted into a file that others use, and how many the next transaction is to have. */
  hasBegun = false;
  pieceKeys: number | undefined;
  readonly #driver = openPrivateDatabase('');
  readonly #insert: PreparedStatement;
  readonly #note: PreparedStatement;
  #keys: PreparedStatement<SpooledRow> | undefined;
  #remarks = 0;
  /** Up to which of them they were there when the lines were read. */
  #read = 0;

  constructor() {
    const driver = this.#driver;
    driver.pragma(`cache_size = ${-CACHE_KIB}`);
    driver.exec(`create table lines (line integer primary key, recorded text,
        length integer not null default 1, in_store integer not null default 0, ${KEY_LISTS});
      create table hashes (line integer primary key, hash text);
      create table remarks (line integer, number integer, kind text, code text, message text,
        primary key (line, number)) without rowid;
      begin`);
    const places = API_KEY_COLUMNS.map(() => '?').join(', ');
    this.#insert = driver.prepare(`insert into lines (line, recorded, ${KEY_LISTS}) values (?, ?, ${places})`);
    this.#note = driver.prepare('insert into remarks values (?, ?, ?, ?, ?)');
  }

  add(lines: readonly ImportLine[]): void {
    inRoom(() => this.#add(lines));
  }

  #add(lines: readonly ImportLine[]): void {
    for (const { line, name, id = null, key, errors, warnings } of lines) {
      const row: Partial<ApiKeyTable> = key ? rowOf(key) : ({ name, id } as Partial<ApiKeyTable>);
      const recorded = key ? JSON.stringify(auditValuesOf(key)) : null;
      this.#insert.run(line, recorded, ...API_KEY_COLUMNS.map((column) => row[column] ?? null));
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
    this.#read = this.#remarks;
  }

  restart(): void {
    this.#driver.prepare('delete from remarks where number > ?').run(this.#read);
  }

  counts(): { keys: number; total: number; failed: number } {
    const { keys, total } = this.#get('select count(digest) as keys, count(*) as total from lines') as {
      keys: number;
      total: number;
    };
    const failed = "select count(distinct line) as failed from remarks where kind = 'error'";
    return { keys, total, ...(this.#get(failed) as { failed: number }) };
  }

  codes(): ErrorCode[] {
    return this.#driver
      .prepare<{ code: ErrorCode }>(
        "select code from remarks where kind = 'error' group by code order by min(line), min(number)",
      )
      .all()
      .map(({ code }) => code);
  }

  *reports(isImported: boolean): Generator<LineReport> {
    const remarks = this.#driver.prepare<Remark & { line: number }>(
      'select * from remarks where line >= ? and line <= ? order by line, number',
    );
    for (const page of this.#pages<Pick<LineRow, 'line' | 'name' | 'id' | 'public_id'>>('name, id, public_id')) {
      const found = Map.groupBy(remarks.all(page[0]!.line, page.at(-1)!.line), ({ line }) => line);
      for (const { line, name, id, public_id: publicId } of page) {
        const of = (wanted: Remark['kind']) =>
          (found.get(line) ?? []).flatMap(({ kind, code, message }) => (kind === wanted ? { code, message } : []));
        const errors = of('error') as ImportProblem[];
        yield {
          line,
          status: errors.length > 0 ? 'failed' : isImported ? 'imported' : 'not imported',
          name,
          id: isImported ? id : null,
          prefix: isImported ? prefixOf(publicId) : null,
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
      // The next page may have more that look like the last one.
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
        where ${HAS_KEY} and (${order}, line) > (?, ?) order by ${order}, line limit ${PAGE_ROWS}`,
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
      `select * from lines where ${HAS_KEY} and created_by is not null and (${column}, line) > (?, ?)
        order by ${column}, line limit ${PAGE_ROWS}`,
    );
    let after: [string, number] | undefined = ['', 0];
    while (after) {
      const page = statement.all(...after);
      if (page.length > 0) yield page.map((row) => ({ line: row.line, key: readStoredKey(row) }));
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

  dependsOn(ids: readonly string[], keys: readonly StoredKey[]): boolean {
    const creators = [...ids, ...keys.map(({ createdBy }) => createdBy)];
    const digests = keys.flatMap(({ digest, previousDigest }) => [digest, previousDigest]);
    const values: Partial<Record<keyof ApiKeyTable, readonly unknown[]>> = {
      id: ids,
      created_by: creators,
      public_id: keys.map(({ publicId }) => publicId),
      digest: digests,
      name_skeleton: keys.map(({ name }) => computeNameSkeleton(name)),
    };
    return Object.entries(values).some(
      ([column, list]) =>
        this.#get(
          `select 1 from lines where ${column} in (select value from json_each(?)) and ${HAS_KEY} limit 1`,
          JSON.stringify(list),
        ) !== undefined,
    );
  }

  /** The first keys of the lines after one. */
  keys(after: number, limit: number): SpooledKey[] {
    this.#keys ??= this.#driver.prepare<SpooledRow>(
      `select lines.line, hash, ${KEY_LISTS} from lines join hashes on hashes.line = lines.line
        where lines.line > ? order by lines.line limit ?`,
    );
    return this.#keys.all(after, limit).map((row) => ({
      line: row.line,
      hash: row.hash,
      id: row.id,
      values: API_KEY_COLUMNS.map((column) => row[column]),
      labels: row.owner === null && row.tags === null ? [] : labelRowsOf(apiKeyOf(row)),
    }));
  }

  /** Makes the hashes of all keys, of which the audit log records values. @returns the last line that has one */
  makeHashes(hashOf: (key: ImportedKey, line: number) => string): number {
    let last = 0;
    const insert = this.#driver.prepare('insert or replace into hashes values (?, ?)');
    type Recorded = { line: number; id: string; name: string; recorded: string };
    for (const page of this.#pages<Recorded>('id, name, recorded', HAS_KEY))
      for (const { line, id, name, recorded } of page) {
        const values = JSON.parse(recorded) as AuditValues;
        inRoom(() => insert.run(line, hashOf({ id, name, values }, line)));
        last = line;
      }
    return last;
  }

  *#pages<Read extends { line: number }>(columns: string, condition = 'true'): Generator<Read[]> {
    const statement = this.#driver.prepare<Read>(
      `select line, ${columns} from lines where line > ? and ${condition} order by line limit ${PAGE_ROWS}`,
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
