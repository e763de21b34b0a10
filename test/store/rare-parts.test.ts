import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type { Connection } from '../../src/store/connection.ts';
import { openConnection, openStore } from '../../src/store/open.ts';
import { isFoundByParts, rarePartsOf } from '../../src/store/search-keys.ts';
import { describeOn } from '../support/dialects.ts';
import { idOf, storedKey } from '../support/keys.ts';
import { tempStore } from '../support/temp.ts';

describeOn('postgres', 'a search of keys by the index', () => {
  let database: string;
  let connection: Connection;
  beforeEach(async () => {
    database = tempStore();
    const store = await openStore({ database });
    await store.repository.write((writer) =>
      writer.insert(
        Array.from({ length: 600 }, (_, index) =>
          storedKey(`${index}`, { name: `Service ${1000 + index} é of a team` }),
        ),
      ),
    );
    await store.close();
    connection = await openConnection({ database });
  });
  afterEach(() => connection.close());

  it('asks it for parts that few keys have, the rarest first', async () => {
    assert.deepEqual(await rarePartsOf(connection, 'service 9876'), ['876', '987']);
    assert.deepEqual(await rarePartsOf(connection, '987 1043'), ['987', '043']);
    assert.deepEqual(await rarePartsOf(connection, 'no key has it'), ['HAS', 'KEY']);
  });

  it('reads no other keys than those that it names', async () => {
    const plan = await connection.run((db) =>
      db.transaction().execute(async (transaction) => {
        await sql`set local enable_seqscan = off`.execute(transaction);
        return transaction
          .selectFrom('api_keys')
          .select('id')
          .where(isFoundByParts('987 1043', ['987', '043']))
          .explain('text');
      }),
    );
    assert.match(JSON.stringify(plan), /Bitmap Index Scan on api_keys_by_search_text/);
    assert.doesNotMatch(JSON.stringify(plan), /Seq Scan/);
  });

  it('asks it for all, or reads the keys in their order, where many keys have each part', async () => {
    for (const search of ['service', 'of a team', 'service 1', 'team', 's', 'se', 'é', '%', ''])
      assert.deepEqual(await rarePartsOf(connection, search), [], search);
  });

  it('asks it for no more than four, and for none with letters that some indexes do not have', async () => {
    assert.deepEqual(await rarePartsOf(connection, 'abcdefghijkl'), ['JKL', 'IJK', 'HIJ', 'GHI']);
    assert.deepEqual(await rarePartsOf(connection, 'äbcd-ef日本語'), ['BCD']);
  });
});

describeOn('postgres', 'a search of a few keys by the index', () => {
  it('asks it for all that is searched for', async () => {
    const database = tempStore();
    const store = await openStore({ database });
    await store.repository.write((writer) => writer.insert([storedKey('one')]));
    await store.close();
    const connection = await openConnection({ database });
    assert.deepEqual(await rarePartsOf(connection, 'no key has it'), []);
    await connection.close();
  });
});

describeOn('postgres', 'a search of keys', () => {
  it('finds none that has only parts of a text, or has them elsewhere, whatever stands around them', async () => {
    const store = await openStore({ database: tempStore() });
    const others = Array.from({ length: 500 }, (_, index) => storedKey(`other ${index}`));
    const names = ['one 123 456', '456 123', 'ONE 1234 56', '123_456', '123%456', 'x123 456y'];
    await store.repository.write((writer) =>
      writer.insert([
        ...others,
        ...names.map((name, index) => storedKey(name, { createdAt: index, roles: ['GUEST'] })),
      ]),
    );
    const found = async (search: string, more = {}) =>
      (await store.repository.list({ search, limit: 9, ...more })).map(({ name }) => name);
    assert.deepEqual(await found('123 456'), ['one 123 456', 'x123 456y']);
    assert.deepEqual(await found('123_456'), ['123_456']);
    assert.deepEqual(await found('123%4'), ['123%456']);
    assert.deepEqual(await found('123 456', { limit: 1 }), ['one 123 456']);
    assert.deepEqual(await found('123 456', { after: { createdAt: 0, id: idOf(names[0]!) } }), ['x123 456y']);
    assert.deepEqual(await found('123 456', { roles: ['ADMIN'] }), []);
    assert.deepEqual(await found('123 456', { status: { is: 'ACTIVE', now: 1 } }), ['one 123 456', 'x123 456y']);
    await store.close();
  });
});
