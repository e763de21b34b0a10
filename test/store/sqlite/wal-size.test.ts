import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOn } from '../../support/dialects.ts';
import { openTestKeys } from '../../support/keys.ts';

const LIMIT = 4 * 1024 * 1024;

describeOn('sqlite', 'the -wal of a store', () => {
  for (const asServer of [false, true])
    it(`grows during a read, and shrinks again afterwards (${asServer ? 'a server' : 'a command'})`, async () => {
      const test = await openTestKeys({ asServer });
      const bytes = () => statSync(`${test.database}-wal`).size;
      const reader = new Database(test.database, { readonly: true });
      reader.exec('begin; select count(*) from api_keys');
      for (let count = 0; bytes() <= 1.5 * LIMIT; count += 1)
        await test.keys.create({ name: `key ${count}`, roles: ['GUEST'] }, OPERATOR);
      reader.close();
      await test.keys.create({ name: 'A', roles: ['GUEST'] }, OPERATOR);
      await test.keys.create({ name: 'B', roles: ['GUEST'] }, OPERATOR);
      assert.ok(bytes() <= LIMIT, `${bytes()}`);
      await test.store.close();
    });
});
