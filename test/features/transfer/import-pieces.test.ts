import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { portsOf } from '../../../src/store/port-of-store.ts';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { readDigest } from '../../../src/features/transfer/digest.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type Catalog, createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import { type Connection, connectionOver } from '../../../src/store/connection.ts';
import { createKeyRepository } from '../../../src/store/key-repository.ts';
import { openConnection } from '../../../src/store/open.ts';
import type { Tables } from '../../../src/store/tables.ts';
import { describeOnEach } from '../../support/dialects.ts';
import {
  authenticate,
  countKeys,
  createPrincipal,
  jsonLines,
  openTestKeys,
  type TestKeys,
} from '../../support/keys.ts';
import { importKeys, type ImportReport } from './support/import-keys.ts';
import { STORES } from '../../support/features.ts';

/** How many keys one transaction inserts, and more than two transactions do. */
const [PIECE, KEYS] = [200, 500];
/** More changes than are kept individually. */
const MANY = 4500;

const line = (name: string, fields: object = {}) => ({
  name,
  sha256: createHash('sha256').update(name).digest('hex'),
  roles: ['VIEWER'],
  ...fields,
});
const linesOf = (prefix: string, count = KEYS) =>
  Array.from({ length: count }, (_, index) => line(`${prefix} ${index}`));

/** True if another transaction waits for a lock of this one, on PostgreSQL. */
async function isWaitedFor(transaction: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql`select pid from pg_locks
    where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`.execute(transaction);
  return rows.length > 0;
}

describeOnEach('an import that others write beside', () => {
  /** The other process. */
  let other: TestKeys;
  let connection: Connection;
  let importer: KeysService;
  let importerWith: (catalog: Catalog) => KeysService;
  /** Runs before each transaction. */
  let before: (attempt: number) => Promise<unknown>;
  /** Runs at the end of each transaction. */
  let within: (attempt: number, transaction: Kysely<Tables>) => Promise<unknown>;

  beforeEach(async () => {
    other = await openTestKeys();
    connection = await openConnection({ database: other.database, features: STORES });
    [before, within] = [async () => {}, async () => {}];
    let attempts = 0;
    const watched = connectionOver(connection, {
      write: async (work, options) => {
        const attempt = (attempts += 1);
        await before(attempt);
        return connection.write(async (transaction, ...more) => {
          const result = await work(transaction, ...more);
          await within(attempt, transaction);
          return result;
        }, options);
      },
    });
    importerWith = (catalog) =>
      new KeysService({
        ...other.options,
        catalog,
        repository: createKeyRepository(watched, undefined, portsOf(STORES)),
      });
    importer = importerWith(other.options.catalog);
  });
  afterEach(async () => {
    await connection.close();
    await other.store.close();
  });

  const load = (...lines: object[]) => importKeys(importer, jsonLines(...lines));
  const codes = ({ lines }: ImportReport) => lines.flatMap(({ errors }) => errors.map(({ code }) => code));
  const outcome = ({ imported, unchanged, failed }: ImportReport) => [imported, unchanged, failed];
  const create = (name: string) => other.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  const beforePiece = (number: number, work: () => Promise<unknown>) => {
    before = async (attempt) => void (attempt === number && (await work()));
  };
  async function assertWhole(count: number): Promise<void> {
    assert.equal(await countKeys(other.store.repository), count);
    const { verification, comparison } = await other.keys.audit.check();
    assert.ok('entries' in verification, JSON.stringify(verification));
    assert.deepEqual([comparison?.compared, comparison?.differences], [count, []]);
  }

  it('lets them create, change and delete keys', async () => {
    const { apiKey: old } = await create('Old');
    const { apiKey: parent } = await create('Parent');
    beforePiece(2, async () => {
      await create('Beside');
      await other.keys.setEnabled(parent.id, false, OPERATOR);
      await other.keys.delete([old.id], OPERATOR);
    });
    const child = line('Child', { createdBy: parent.id });
    assert.equal((await load(...linesOf('Imported'), child)).imported, KEYS + 1);
    await assertWhole(KEYS + 3);
  });

  it('shows the keys of each transaction at once, with their entries in the audit log', async () => {
    const seen: unknown[] = [];
    before = async () => {
      const found = await authenticate(other.keys, 'Imported 0');
      const head = await other.store.repository.auditLog.head();
      seen.push([await countKeys(other.store.repository), head?.number ?? 0, 'principal' in found]);
    };
    await load(...linesOf('Imported'));
    assert.deepEqual(seen, [
      [0, 0, false],
      [PIECE, PIECE, true],
      [2 * PIECE, 2 * PIECE, true],
    ]);
    await assertWhole(KEYS);
  });

  it('keeps a revocation waiting for one transaction at most', async () => {
    const { apiKey } = await create('Revoked');
    let revocation: Promise<unknown> | undefined;
    within = async (attempt, transaction) => {
      if (attempt !== 2) return;
      revocation ??= other.keys.setEnabled(apiKey.id, false, OPERATOR);
      if (connection.dialect === 'postgres') while (!(await isWaitedFor(transaction)));
    };
    // SQLite has no queue: a revocation runs while the import pauses.
    beforePiece(3, async () => connection.dialect === 'sqlite' && (await revocation));
    await load(...linesOf('Imported', 5 * PIECE));
    await revocation;
    const entries = await other.store.repository.auditLog.find({ order: 'oldest', after: 0, limit: 6 * PIECE });
    const actions = entries.map(({ action }) => action);
    assert.equal(
      actions.slice(0, actions.indexOf('DISABLE')).filter((action) => action === 'IMPORT').length,
      2 * PIECE,
    );
  });

  it('is found by searches, and by servers that have asked for its secrets before', async () => {
    const revision = other.store.repository.revision()!;
    assert.equal((await load(...linesOf('Imported', MANY))).imported, MANY);
    const { keys } = await other.keys.list({ search: 'imported 4499' }, OPERATOR);
    assert.deepEqual(
      keys.map(({ name }) => name),
      ['Imported 4499'],
    );
    if (connection.dialect === 'sqlite') assert.equal(other.store.repository.keysChangedSince(revision), 'any');
    await create('Later');
    assert.equal((await other.keys.list({ search: 'later' }, OPERATOR)).keys.length, 1);
  });

  it('notes few keys one by one, so that others are remembered', async () => {
    if (connection.dialect === 'postgres') return; // This announces no new keys.
    await create('Known');
    const revision = other.store.repository.revision()!;
    const { lines } = await load(...linesOf('Imported', 3));
    other.store.repository.revision();
    const changed = other.store.repository.keysChangedSince(revision);
    assert.ok(changed !== 'any');
    assert.deepEqual(changed.toSorted(), lines.map(({ id }) => id!).toSorted());
  });

  it('writes entries in the order of its lines', async () => {
    beforePiece(2, () => create('Beside'));
    await load(...linesOf('Imported'));
    const entries = await other.store.repository.auditLog.find({ order: 'oldest', after: 0, limit: 2 * KEYS });
    const names = linesOf('Imported').map(({ name }) => `IMPORT ${name} tester`);
    assert.deepEqual(
      entries.map(({ action, apiKey: key, actor }) => `${action} ${key!.name} ${actor.name}`),
      [...names.slice(0, PIECE), 'CREATE Beside tester', ...names.slice(PIECE)],
    );
  });

  it('ends at a name that was taken meanwhile, and goes on without that line', async () => {
    beforePiece(2, () => create('Imported 207'));
    const lines = linesOf('Imported');
    const report = await load(...lines);
    assert.deepEqual([outcome(report), codes(report)], [[PIECE, 0, 1], ['NAME_TAKEN']]);
    assert.deepEqual(
      [199, 200, 207, 499].map((index) => report.lines[index]!.status),
      ['imported', 'not imported', 'failed', 'not imported'],
    );
    await assertWhole(PIECE + 1);
    const others = lines.filter(({ name }) => name !== 'Imported 207');
    assert.deepEqual(outcome(await load(...others)), [KEYS - PIECE - 1, PIECE, 0]);
    await assertWhole(KEYS);
  });

  it('ends at a secret that another key has got meanwhile, as its previous one', async () => {
    const { apiKey: key } = await create('Rotated');
    beforePiece(1, () =>
      other.store.repository.write(async (writer) => {
        const stored = (await writer.findById(key.id))!;
        const previousDigest = readDigest(line('Imported 7').sha256)!;
        const rotation = { previousPublicId: 'x', startedAt: 0, grace: 1, previousEndsAt: 1 };
        await writer.update([{ before: stored, after: { ...stored, previousDigest, rotation } }]);
      }),
    );
    assert.deepEqual(codes(await load(...linesOf('Imported', 10))), ['SECRET_TAKEN']);
  });

  it('ends at a creator that was deleted meanwhile', async () => {
    const { apiKey: key } = await create('Parent');
    beforePiece(1, () => other.keys.delete([key.id], OPERATOR));
    assert.deepEqual(codes(await load(line('Child', { createdBy: key.id }))), ['NOT_FOUND']);
    await assertWhole(0);
  });

  it('counts the keys that its creators have got meanwhile', async () => {
    const { principal: creator } = await createPrincipal(other.keys, { name: 'Parent', roles: ['ADMIN'] });
    importer = importerWith(createCatalog({ policy: { maxKeysPerCreator: 3 } }));
    const children = ['One', 'Two', 'Three'].map((name) => line(name, { createdBy: creator.apiKey.id }));
    beforePiece(1, () => other.keys.create({ name: 'Beside', roles: ['GUEST'] }, creator));
    assert.deepEqual(codes(await load(...children)), ['POLICY_VIOLATED']);
    await assertWhole(2);
    assert.deepEqual(outcome(await load(...children.slice(1))), [2, 0, 0]);
    assert.deepEqual(outcome(await load(...children.slice(1))), [0, 2, 0]);
  });

  it('imports beside another import', async () => {
    let others: Promise<ImportReport> | undefined;
    beforePiece(1, async () => void (others = importKeys(other.keys, jsonLines(...linesOf('Other')))));
    assert.equal((await load(...linesOf('Imported'))).imported, KEYS);
    assert.equal((await others!).imported, KEYS);
    await assertWhole(2 * KEYS);
  });

  it('imports the same keys once, where two do so at once', async () => {
    const lines = linesOf('Imported');
    let others: Promise<ImportReport> | undefined;
    beforePiece(1, async () => void (others = importKeys(other.keys, jsonLines(...lines))));
    const reports = [await load(...lines), await others!];
    assert.equal(reports[0]!.imported + reports[1]!.imported, KEYS);
    for (const report of reports) assert.deepEqual([report.imported + report.unchanged, report.failed], [KEYS, 0]);
    await assertWhole(KEYS);
  });

  for (const passed of [1, 2, 3, 4, 5, 6, 7, 8])
    it(`takes keys for unchanged that another import brings before question ${passed} of its comparison`, async () => {
      const lines = linesOf('Imported', 10);
      const { repository } = other.store;
      let asked = 0;
      const among =
        <Args extends unknown[], Found>(find: (...args: Args) => Promise<Found>) =>
        async (...args: Args): Promise<Found> => {
          asked += 1;
          if (asked === passed) assert.equal((await importKeys(other.keys, jsonLines(...lines))).imported, 10);
          return find(...args);
        };
      const asking = {
        ...repository,
        findBy: among(repository.findBy.bind(repository)),
        findByDigests: among(repository.findByDigests.bind(repository)),
      };
      importer = new KeysService({ ...other.options, repository: asking });
      assert.deepEqual(outcome(await load(...lines)), [0, 10, 0]);
      assert.ok(asked >= passed, `${asked} questions`);
      await assertWhole(10);
    });

  it('says how far it came when it fails half-way, and goes on from there', async () => {
    beforePiece(3, () => Promise.reject(new KeysError('STORE_FULL', 'The disk is full.')));
    await assert.rejects(load(...linesOf('Imported')), {
      code: 'STORE_FULL',
      message: 'The disk is full. 400 of 500 keys were imported before that. Run it again to import the others.',
    });
    await assertWhole(2 * PIECE);
    assert.deepEqual(outcome(await load(...linesOf('Imported'))), [KEYS - 2 * PIECE, 2 * PIECE, 0]);
    await assertWhole(KEYS);
  });
});
