import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Kysely } from 'kysely';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { PrivateFile } from '../../../src/store/sqlite/private-file.ts';
import { dialectOf } from '../../../src/store/sqlite/sqlite-driver.ts';
import { findDamage } from '../../../src/store/sqlite/sqlite-schema.ts';
import type { Tables } from '../../../src/store/tables.ts';
import { describeOn } from '../../support/dialects.ts';
import { openTestKeys } from '../../support/keys.ts';
import { STORES } from '../../support/features.ts';

describeOn('sqlite', 'the indexes of a file', () => {
  let database: string;
  before(async () => {
    const { keys, store, ...test } = await openTestKeys();
    ({ database } = test);
    for (const name of ['One', 'Two', 'Three']) await keys.create({ name, roles: ['GUEST'] }, OPERATOR);
    await store.close();
  });

  async function damageOf(path: string): Promise<string | undefined> {
    const file = await PrivateFile.open(path, { location: path, mustExist: true, features: STORES });
    try {
      return await findDamage(file);
    } finally {
      await file.close();
    }
  }

  it('are found to be whole', async () => {
    assert.equal(await damageOf(database), undefined);
  });

  it('are found to be whole where another program writes between any two statements', async () => {
    const writer = new Database(database);
    const driver = new Database(database, { readonly: true });
    let written = 0;
    const log = () => {
      written += 1;
      writer.prepare("insert into used_tokens (digest, ends_at) values ('token ' || ?, 1)").run(written);
    };
    const db = new Kysely<Tables>({ dialect: dialectOf(driver), log });
    try {
      assert.equal(await findDamage({ run: (work) => work(db), features: STORES }), undefined);
      assert.ok(written > 0);
    } finally {
      for (const each of [driver, writer]) each.close();
    }
  });

  for (const [table, name, column, indexed] of [
    ['api_keys', 'name', 'id', 'id'],
    ['api_keys', 'name', 'name', 'name'],
    ['api_keys', 'name', 'public_id', 'public_id'],
    ['api_keys', 'name', 'digest', 'digest'],
    ['audit_log', 'key_name', 'substr(key_id, 1, 7)', null],
  ] as const)
    it(`are found to be damaged where a letter in that of ${column} is another one`, async () => {
      const db = new Database(database, { readonly: true });
      const text = db.prepare(`select ${column} from ${table} where ${name} = 'Two'`).pluck().get() as string;
      const [root] = db
        .prepare(
          `select rootpage from sqlite_schema, pragma_index_info(sqlite_schema.name) as info
            where type = 'index' and tbl_name = '${table}' and info.seqno = 0 and info.name is ?`,
        )
        .pluck()
        .all(indexed) as number[];
      const pageBytes = db.pragma('page_size', { simple: true }) as number;
      db.close();
      const bytes = readFileSync(database);
      const at = bytes.indexOf(text, (root! - 1) * pageBytes);
      assert.ok(at > 0 && at < root! * pageBytes);
      bytes[at + 1]! ^= 1;
      const path = `${database}-${root}`;
      writeFileSync(path, bytes, { mode: 0o600 });
      assert.match((await damageOf(path))!, /^row \d+ missing from index \w+$/);
    });
});
