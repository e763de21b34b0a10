import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { USAGE } from '../../src/keys/key/usage.ts';
import { describeOnEach } from '../support/dialects.ts';
import { readDirectly } from '../support/direct.ts';
import { openTestKeys, storedKey } from '../support/keys.ts';

const SIZE = {
  sqlite: `select sum(pgsize) as size from dbstat where name like 'key_usage_hours%'`,
  postgres: `select pg_total_relation_size('key_usage_hours') as size`,
};
/** In bytes, as docs/observability.md has it. */
const MAX_BYTES = { sqlite: 120, postgres: 700 };

describeOnEach('the use of a key in an hour', (dialect) => {
  it(`takes at most ${MAX_BYTES[dialect]} bytes, also where it is written several times`, async () => {
    const test = await openTestKeys();
    const ids = Array.from({ length: 500 }, () => randomUUID()).toSorted();
    const totals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null, permissions: [] };
    const counts = { accepted: 10_000, forbidden: 0, limited: 50, refused: 0 };
    await test.store.repository.write((writer) => writer.insert(ids.map((id) => storedKey(id))), { now: 0 });
    const hours = 20;
    for (let hour = 0; hour < hours; hour += 1) {
      const start = test.time.now + hour * 3_600_000;
      for (let time = 0; time < 3; time += 1)
        await test.store.repository.write(
          (writer) => writer.port(USAGE).add(ids.map((id) => ({ id, ...totals, hours: [{ start, ...counts }] }))),
          { now: 0 },
        );
    }
    const [{ size }] = (await readDirectly(test.database, SIZE[dialect])) as [{ size: number | string }];
    await test.store.close();
    const bytes = Number(size) / (hours * ids.length);
    assert.ok(bytes > 50 && bytes <= MAX_BYTES[dialect], `${bytes} bytes`);
  });
});
