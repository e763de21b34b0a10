import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { startOf } from '../../../src/keys/key/use.ts';
import { USAGE } from '../../../src/features/usage/usage.ts';
import type { DialectName } from '../../../src/store/connection.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { readDirectly } from '../../support/direct.ts';
import { openTestKeys, storedKey } from '../../support/keys.ts';

const sizeOf = (dialect: DialectName, table: string) =>
  dialect === 'sqlite'
    ? `select sum(pgsize) as size from dbstat where name like '${table}%'`
    : `select pg_relation_size('${table}') + pg_indexes_size('${table}') as size`;
/** In bytes, as in docs/observability.md. */
const MAX_BYTES = { sqlite: 40, postgres: 100 };

describeOnEach('the use of a key in an hour, and on a day', (dialect) => {
  it(`takes at most ${MAX_BYTES[dialect]} bytes, also where it is written several times`, async () => {
    const test = await openTestKeys();
    const ids = Array.from({ length: 1000 }, () => randomUUID()).toSorted();
    const totals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null, permissions: [] };
    const counts = { accepted: 10_000, forbidden: 0, limited: 50, refused: 0 };
    await test.store.repository.write((writer) => writer.insert(ids.map((id) => storedKey(id))));
    const [hours, first] = [20, startOf('DAY', test.time.now)];
    for (let hour = 0; hour <= hours; hour += 1) {
      const start = first + hour * 4 * 3_600_000;
      for (let time = 0; time < 3; time += 1)
        await test.store.repository.write(
          (writer) => writer.port(USAGE).add(ids.map((id) => ({ id, ...totals, hours: [{ start, ...counts }] }))),
          { counts: true },
        );
    }
    const check = async (table: string, rows: number) => {
      const [{ size }] = (await readDirectly(test.database, sizeOf(dialect, table))) as [{ size: number | string }];
      const bytes = Number(size) / rows;
      assert.ok(bytes > 20 && bytes <= MAX_BYTES[dialect], `${table}: ${bytes} bytes`);
    };
    await check('key_usage_hours', hours * ids.length);
    const bounds = { hoursFrom: first + 4 * 24 * 3_600_000, daysFrom: 0, rows: 3000 };
    const condense = () =>
      test.store.repository.write((writer) => writer.port(USAGE).condense(bounds), { counts: true });
    while (!(await condense()));
    await check('key_usage_days', 4 * ids.length);
    await test.store.close();
  });
});
