import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { readDirectly } from '../../support/direct.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { steadyRandomness } from '../../support/random.ts';
import { importKeys } from '../../features/transfer/support/import-keys.ts';

/** With fewer keys, the fixed size of tables and indexes would count. */
const KEYS = 25_000;
const CHANGES = 100;
const PAGE_BYTES = 4096;
/** The sizes of the -wal file's header and of each frame's. */
const [FRAME_HEADER_BYTES, HEADER_BYTES] = [24, 32];

/** The maximum bytes for a key with its first audit entry. */
const MOST_BYTES = 800;

describeOnEach('a store of many keys', (dialect) => {
  let test: TestKeys;
  let ids: string[];
  let bytesOfNone: number;

  before(async () => {
    test = await openTestKeys({ randomness: steadyRandomness() });
    bytesOfNone = await sizeOf();
    async function* lines() {
      for (let index = 0; index < KEYS; index += 1)
        yield Buffer.from(
          `${JSON.stringify({ name: `Customer ${index}`, roles: ['VIEWER'], sha256: hash('sha256', String(index)) })}\n`,
        );
    }
    assert.equal((await importKeys(test.keys, lines())).imported, KEYS);
    const rows = await readDirectly(test.database, `select id from api_keys order by digest limit ${2 * CHANGES}`);
    ids = rows.map(({ id }) => String(id));
  });
  after(() => test.store.close());

  it('takes little room for each key with its first entry of the audit log', async () => {
    const bytes = (await sizeOf()) - bytesOfNone;
    assert.ok(bytes / KEYS > 500 && bytes / KEYS <= MOST_BYTES, `${bytes / KEYS} bytes`);
  });

  async function sizeOf(): Promise<number> {
    const query =
      dialect === 'sqlite'
        ? "select sum(pgsize) as bytes from dbstat where name <> 'key_changes'"
        : "select sum(pg_total_relation_size(oid)) as bytes from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'";
    const [row] = await readDirectly(test.database, query);
    return Number(row!['bytes']);
  }

  if (dialect === 'postgres') return;

  /** How many pages each change writes while another program reads. */
  async function pagesOf(change: (id: string) => Promise<unknown>, of: readonly string[]): Promise<number> {
    const reader = new Database(test.database);
    reader.pragma('wal_checkpoint(truncate)');
    reader.exec('begin; select count(*) from api_keys');
    await change(of[0]!);
    const bytes = () => statSync(`${test.database}-wal`).size - HEADER_BYTES;
    const before = bytes();
    for (const id of of.slice(1)) await change(id);
    const pages = (bytes() - before) / (PAGE_BYTES + FRAME_HEADER_BYTES);
    reader.close();
    return pages / (of.length - 1);
  }

  it('is changed in at most 6 pages where a key is disabled, and 11 where it is deleted, with its entry', async () => {
    const disabled = await pagesOf((id) => test.keys.setEnabled(id, false, OPERATOR), ids.slice(0, CHANGES));
    assert.ok(disabled > 1 && disabled <= 6, `${disabled} pages`);
    const deleted = await pagesOf((id) => test.keys.delete([id], OPERATOR), ids.slice(CHANGES));
    assert.ok(deleted > 1 && deleted <= 11, `${deleted} pages`);
  });
});
