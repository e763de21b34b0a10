import type Database from 'better-sqlite3';

interface ChangeRow {
  number: number;
  key_id: string;
  mark: string;
}

/** Reads which keys were created, changed or deleted, by any program, since it was asked last. See `key_changes`. */
export class ChangedKeys {
  readonly #since: Database.Statement<[number], ChangeRow>;
  readonly #latest: Database.Statement<[], ChangeRow>;
  /** The change that was read last. */
  #last: ChangeRow | undefined;

  constructor(driver: Database.Database) {
    this.#since = driver.prepare('select * from key_changes where number >= ? order by number');
    this.#latest = driver.prepare('select * from key_changes order by number desc limit 1');
  }

  /** Their ids; `any` for the first time, and if too many were changed. */
  read(): readonly string[] | 'any' {
    const [first, ...others] = this.#last ? this.#since.all(this.#last.number) : [];
    // Without the change that was read last, others may be missing as well.
    if (!first || first.mark !== this.#last?.mark) {
      this.#last = this.#latest.get();
      return 'any';
    }
    this.#last = others.at(-1) ?? first;
    return others.map(({ key_id }) => key_id);
  }
}
