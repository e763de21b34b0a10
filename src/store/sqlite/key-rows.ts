import type Database from 'better-sqlite3';
import { MAX_CHAIN_LENGTH } from '../../keys/authorization/chain.ts';
import type { FoundRow } from '../connection.ts';
import { KEY_COLUMNS, type KeyRow } from '../tables.ts';

/** Finds the rows of keys by statements that are prepared once: as often as a key is checked for the first time. */
export class KeyRows {
  readonly #byDigest: Database.Statement<[string, string], KeyRow>;
  readonly #byId: Database.Statement<[string], KeyRow>;
  readonly #family: (digest: string) => FoundRow;

  constructor(driver: Database.Database) {
    const select = `select ${KEY_COLUMNS.join(', ')} from api_keys`;
    this.#byDigest = driver.prepare(`${select} where digest = ? or previous_digest = ?`);
    this.#byId = driver.prepare(`${select} where id = ?`);
    this.#family = driver.transaction((digest: string) => this.#find(digest));
  }

  /** The key that has a secret with this digest, and the keys that created it, all as they were at one moment. */
  findByDigest(digest: string): FoundRow {
    const row = this.#byDigest.get(digest, digest);
    return row?.created_by ? this.#family(digest) : { row, ancestors: [] };
  }

  #find(digest: string): FoundRow {
    const row = this.#byDigest.get(digest, digest);
    const ancestors: KeyRow[] = [];
    for (let key = row; key?.created_by && ancestors.length < MAX_CHAIN_LENGTH;) {
      key = this.#byId.get(key.created_by);
      if (key) ancestors.push(key);
    }
    return { row, ancestors };
  }
}
