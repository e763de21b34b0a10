import type Database from 'better-sqlite3';
import { type LastChange, precedes } from './last-change.ts';
import type { MainFile } from './main-file.ts';
import { isLocked } from './sqlite-errors.ts';

interface KnownChange {
  change: LastChange;
  /** The number of the page that has it. */
  page: number;
  /** Whether the file itself was seen to have it: it must not go back then. */
  isInFile: boolean;
}

/** The last changes of a database as a connection has seen them, compared with what the file itself has. */
export class KnownChanges {
  readonly #main: MainFile;
  readonly #pageBytes: number;
  readonly #page: Database.Statement<[], number>;
  readonly #lastChange: Database.Statement<[], string>;
  /** The last one, and the one that was seen before. */
  #known: KnownChange[] = [];

  constructor(driver: Database.Database, main: MainFile) {
    this.#main = main;
    this.#pageBytes = driver.pragma('page_size', { simple: true }) as number;
    this.#page = driver.prepare<[], number>(`select rootpage from sqlite_schema where name = 'last_change'`).pluck();
    this.#lastChange = driver.prepare<[], string>('select ids from last_change').pluck();
    this.see();
  }

  /** Whether the file has the last change that this connection knows, or is still to get it. */
  areHeld(): boolean {
    for (let last: string | undefined; ;) {
      const inFile = this.#known.map(({ page }) => this.#main.lastChange(page, this.#pageBytes));
      for (const [index, known] of this.#known.entries()) {
        if (inFile[index]?.id === known.change.id) return (known.isInFile = true);
        if (known.isInFile) break;
        if (precedes(inFile[index], [known.change])) return true;
      }
      try {
        this.see();
      } catch (error) {
        if (isLocked(error)) throw error;
        return false;
      }
      // Another process may have written in between, several times.
      const now = JSON.stringify([inFile, this.#known]);
      if (now === last) return false;
      last = now;
    }
  }

  /** Whether the file itself has the last change that was seen. */
  isLastInFile(): boolean {
    const [{ page, change }] = this.#known as [KnownChange];
    return this.#main.lastChange(page, this.#pageBytes)?.id === change.id;
  }

  /** Reads the last change as this connection has it now. */
  see(): LastChange {
    const [page, ids] = [this.#page.get()!, this.#lastChange.get()!];
    const change = { id: ids.slice(0, 36), previousId: ids.slice(36) };
    const [latest] = this.#known;
    if (latest?.page !== page || latest.change.id !== change.id)
      this.#known = [{ page, change, isInFile: false }, ...this.#known].slice(0, 2);
    return change;
  }
}
