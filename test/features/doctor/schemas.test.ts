import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { inspectStore } from '../../../src/features/doctor/inspection/inspect-store.ts';
import type { Migration } from '../../../src/store/migrations.ts';
import { testCli } from '../../support/cli.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { contentOf } from '../../support/direct.ts';
import { STORES } from '../../support/features.ts';
import { openTestKeys } from '../../support/keys.ts';
import { setSchema, withNextSchema } from '../../support/next-schema.ts';
import { tempStore } from '../../support/temp.ts';

const addTeam: Migration = async (db) => void (await sql`alter table api_keys add column team text`.execute(db));

/** The findings about the schema, with their remedies. */
async function findingsOf(database: string): Promise<[string, string | null][]> {
  const options = { auditKey: undefined, clock: Date.now, features: STORES };
  const findings = await inspectStore(database, process.env, options);
  return findings.filter(({ check }) => check === 'SCHEMA').map(({ status, remedy }) => [status, remedy]);
}

describeAlwaysOnEach('doctor', () => {
  it('finds a store of a version that was never released', async () => {
    const cli = testCli();
    await cli.given('A');
    await setSchema(cli.database, 27);
    const before = await contentOf(cli.database);
    const [[status, remedy] = []] = await findingsOf(cli.database);
    assert.deepEqual([status, /STORE_OLDER/.test(remedy!)], ['failure', true]);
    assert.equal(await contentOf(cli.database), before);
  });

  it('does not migrate a store of the version before', async () => {
    const database = tempStore();
    await openTestKeys({ database }).then(({ store }) => store.close());
    const before = await contentOf(database);
    await withNextSchema(addTeam, async () => {
      const [[status, remedy] = []] = await findingsOf(database);
      assert.equal(status, 'warning');
      assert.match(remedy!, /The next command migrates it, "svc-api apikey backup" too/);
    });
    assert.equal(await contentOf(database), before);
  });
});
