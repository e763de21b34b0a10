import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { readDirectly } from '../support/direct.ts';
import { openTestKeys } from '../support/keys.ts';
import { runStoreChild } from '../support/store-process.ts';
import { migratedStore } from '../support/temp.ts';

const WRITERS = 4;
const CHANGES = 200;

describeOnEach(`four programs that make ${CHANGES} changes each`, () => {
  it('lose none, of keys, counts, rotations and the log, whose chain is whole', async () => {
    const database = await migratedStore();
    const { keys, store } = await openTestKeys({ database });
    const { apiKey: shared, key: secret } = await keys.create({ name: 'Shared', roles: ['GUEST'] }, OPERATOR);
    const { apiKey: turning } = await keys.create({ name: 'Turning', roles: ['GUEST'] }, OPERATOR);
    const reports = await Promise.all(
      Array.from({ length: WRITERS }, (_, index) =>
        runStoreChild(['change', database, `Writer ${index}`, String(CHANGES), secret]),
      ),
    );
    const made: Record<string, number> = {};
    for (const report of reports)
      for (const [action, count] of Object.entries(report)) made[action] = (made[action] ?? 0) + Number(count);
    made['CREATE']! += 2;
    const logged = await readDirectly(
      database,
      'select action, count(*) as entries from audit_log group by action order by action',
    );
    assert.deepEqual(Object.fromEntries(logged.map(({ action, entries }) => [action, Number(entries)])), made);

    const verification = (await keys.audit.check()).verification;
    assert.equal('entries' in verification && verification.entries, WRITERS * CHANGES + 2);
    assert.deepEqual((await keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted(), ['Shared', 'Turning']);
    assert.equal((await keys.useOf([shared.id])).get(shared.id)?.uses, WRITERS * CHANGES);

    const turns = await readDirectly(database, `select * from audit_log where action = 'ROTATE' order by number`);
    const prefixes = turns.map(({ before, after }) =>
      [before, after].map((text) => (JSON.parse(String(text)) as { prefix: string }).prefix),
    );
    for (const [index, [before]] of prefixes.slice(1).entries())
      assert.equal(before, prefixes[index]![1], 'no rotation is overwritten');
    const { publicId } = (await keys.findById(turning.id, OPERATOR))!;
    assert.ok(prefixes.at(-1)![1]!.includes(publicId));
    await store.close();
  });
});
