import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { copyStore } from '../../../src/features/backup/copy-store.ts';
import { openConnection, openStore } from '../../../src/store/open.ts';
import { describeOn, describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, readDirectly } from '../../support/direct.ts';
import { storedKey } from '../../support/keys.ts';
import { makeStore, tempFolder, tempStore } from '../../support/temp.ts';
import { STORES } from '../../support/features.ts';

/** A store with keys created at these times, in milliseconds since 1970. */
async function storeWith(times: readonly number[]): Promise<string> {
  const database = tempStore();
  const store = await openStore({ database });
  await store.repository.write((writer) =>
    writer.insert(times.map((createdAt) => storedKey(randomUUID(), { createdAt }))),
  );
  await store.close();
  return database;
}

/** Copies a store into a file, which is created if necessary. */
async function copyInto(file: string, database: string): Promise<number> {
  const [source, target] = [
    await openConnection({ database, features: STORES }),
    await openConnection({ database: file, features: STORES }),
  ];
  const { keys } = await copyStore(source, target);
  await source.close();
  await target.close();
  return keys;
}

describeOnEach('a copy of a store in an SQLite file', () => {
  it('has the keys where they are listed, so that a page of the list is read in one piece', async () => {
    const times = Array.from({ length: 2500 }, (_, index) => (index * 7919) % 1250);
    const database = await storeWith(times);
    const file = join(tempFolder(), 'copy.sqlite');
    assert.equal(await copyInto(file, database), times.length);
    const listed = await readDirectly(database, 'select id from api_keys order by created_at, id');
    assert.deepEqual(await readDirectly(file, 'select id from api_keys order by rowid'), listed);
  });

  it('has all tables, indexes and triggers of a new one, and notices changes by SQL', async () => {
    const database = await storeWith([1, 2, 3]);
    const file = join(tempFolder(), 'copy.sqlite');
    await makeStore(file);
    const schema = "select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite_%' order by name";
    const before = await readDirectly(file, schema);
    await copyInto(file, database);
    assert.deepEqual(await readDirectly(file, schema), before);
    await changeDirectly(
      file,
      `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at, managed, short_text)
        values ('four', 'four', '[]', '[]', 'four', 'four', 1, 0, 'BY HAND')`,
    );
    const [change] = await readDirectly(file, 'select key_id from key_changes order by number desc limit 1');
    assert.deepEqual(change, { key_id: 'four' });
    const store = await openStore({ database: file });
    const found = await store.repository.list({ search: 'y han', limit: 9 });
    assert.deepEqual(
      found.map(({ id }) => id),
      ['four'],
    );
    await store.close();
  });
});

describeOn('sqlite', 'a copy of a store in an SQLite file', () => {
  it('has all keys, whatever SQL has written as their times', async () => {
    const database = await storeWith(Array.from({ length: 1001 }, (_, index) => index));
    // The last key of the first page, and a key after it whose number is misread as greater.
    await changeDirectly(
      database,
      "update api_keys set id = 'z', created_at = 9007199254740995 where created_at = 999",
      "update api_keys set id = 'a', created_at = 9007199254740996 where created_at = 1000",
    );
    assert.equal(await copyInto(join(tempFolder(), 'copy.sqlite'), database), 1001);
  });
});
