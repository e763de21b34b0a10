import type Database from 'better-sqlite3';
import { MAX_CHAIN_LENGTH } from '../../keys/authorization/chain.ts';
import { trace } from '../../keys/steps.ts';
import type { FoundRow, KeyRowBySecret } from '../connection.ts';
import { KEY_COLUMNS, type KeyRow, type RotatedSecretTable } from '../tables.ts';

/** Its statements take no longer than to tell how long. */
const NO_TIME = {};

/**
 * Finds the rows of keys by statements that are prepared once: as often as a key is checked for the first time, and
 * each time that one is refused.
 */
export class KeyRows {
  readonly #byDigest: Database.Statement<[string, string], KeyRow>;
  readonly #rotated: Database.Statement<[string], Pick<RotatedSecretTable, 'key_id' | 'public_id'>>;
  readonly #byId: Database.Statement<[string], KeyRow>;
  readonly #family: (digest: string) => FoundRow;

  constructor(driver: Database.Database) {
    const select = `select ${KEY_COLUMNS.join(', ')} from api_keys`;
    this.#byDigest = driver.prepare(`${select} where digest = ? or previous_digest = ?`);
    this.#rotated = driver.prepare('select key_id, public_id from rotated_secrets where digest = ?');
    this.#byId = driver.prepare(`${select} where id = ?`);
    this.#family = driver.transaction((digest: string) => this.#find(digest));
  }

  /** The key of a secret with this digest, and the keys that created it, all as they were at one moment. */
  findByDigest(digest: string): FoundRow {
    trace(this.#byDigest.source, NO_TIME);
    const row = this.#byDigest.get(digest, digest);
    const isAlone = row ? !row.created_by : this.#rotated.get(digest) === undefined;
    return isAlone ? { row, ancestors: [] } : this.#family(digest);
  }

  #find(digest: string): FoundRow {
    const row = this.#byDigest.get(digest, digest) ?? this.#findByRotated(digest);
    const ancestors: KeyRow[] = [];
    for (let key: KeyRow | undefined = row; key?.created_by && ancestors.length < MAX_CHAIN_LENGTH;) {
      key = this.#byId.get(key.created_by);
      if (key) ancestors.push(key);
    }
    return { row, ancestors };
  }

  /** A join takes three times as long as both statements. */
  #findByRotated(digest: string): KeyRowBySecret | undefined {
    const rotated = this.#rotated.get(digest);
    const row = rotated && this.#byId.get(rotated.key_id);
    return row && { ...row, rotated_public_id: rotated.public_id };
  }
}

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
