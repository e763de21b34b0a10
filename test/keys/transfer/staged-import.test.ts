import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { readDigest } from '../../../src/keys/secret/secret.ts';
import type { ImportReport } from '../../../src/keys/transfer/import.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type Catalog, createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import type { Connection } from '../../../src/store/connection.ts';
import { createKeyRepository } from '../../../src/store/key-repository.ts';
import { openConnection } from '../../../src/store/open.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly } from '../../support/direct.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { countKeys, createPrincipal, idOf, jsonLines, openTestKeys, type TestKeys } from '../../support/keys.ts';

/** More than one page. */
const KEYS = 1500;
/** More changes than are remembered one by one. */
const MANY = 4500;

const line = (name: string, fields: object = {}) => ({
  name,
  sha256: createHash('sha256').update(name).digest('hex'),
  roles: ['VIEWER'],
  ...fields,
});
const linesOf = (prefix: string, count = KEYS) =>
  Array.from({ length: count }, (_, index) => line(`${prefix} ${index}`));

describeOnEach('an import that others write beside', (dialect) => {
  /** The other process. */
  let other: TestKeys;
  let connection: Connection;
  let importer: KeysService;
  let importerWith: (catalog: Catalog) => KeysService;
  /** What happens when all keys are inserted, in a file before that: it is locked from then on. */
  let meanwhile: (attempt: number) => Promise<unknown>;
  /** What happens when the first ones are inserted. */
  let onProgress: () => Promise<void>;
  /** Whether it writes nothing more once all keys are there. */
  let isKilledAfterwards: boolean;

  beforeEach(async () => {
    other = await openTestKeys();
    connection = await openConnection({ database: other.database });
    let attempts = 0;
    let isPublished = false;
    const write: Connection['write'] = async (work, { before, ...options } = {}) => {
      const others = () => meanwhile((attempts += 1));
      if (dialect === 'sqlite') await others();
      const inserted: typeof before = async (db, keysChanged) => {
        const giveWay = await before!(db, keysChanged);
        if (dialect === 'postgres') await others();
        return giveWay;
      };
      if (isPublished && isKilledAfterwards) throw new Error('It was killed.');
      const result = await connection.write(work, { ...options, before: before && inserted });
      isPublished ||= before !== undefined;
      return result;
    };
    const watched = new Proxy(connection, {
      get: (target, name) => {
        const value: unknown = name === 'write' ? write : Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    importerWith = (catalog) =>
      new KeysService({ ...other.options, catalog, repository: createKeyRepository(watched) });
    importer = importerWith(other.options.catalog);
    meanwhile = async () => {};
    onProgress = async () => {};
    isKilledAfterwards = false;
  });
  afterEach(async () => {
    await connection.close();
    await other.store.close();
  });

  const load = (...lines: object[]) =>
    importer.transfer.import(jsonLines(...lines), { onProgress: () => onProgress() });
  const codes = ({ lines }: ImportReport) => lines.flatMap(({ errors }) => errors.map(({ code }) => code));
  const create = (name: string) => other.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  const atFirst = (work: () => Promise<unknown>) => {
    meanwhile = async (attempt) => void (attempt === 1 && (await work()));
  };
  async function waiting(): Promise<number> {
    const { rows } = await connection.run((db) =>
      sql`select from pg_locks where not granted and transactionid is not null`.execute(db),
    );
    return rows.length;
  }
  async function assertWhole(count: number): Promise<void> {
    assert.equal(await countKeys(other.store.repository), count);
    const { verification, comparison } = await other.keys.audit.check();
    assert.ok('entries' in verification, JSON.stringify(verification));
    assert.deepEqual([comparison?.compared, comparison?.differences], [count, []]);
  }

  it('lets them create, change and delete keys, and shows nothing until all is there', async () => {
    const { apiKey: old } = await create('Old');
    const { apiKey: parent } = await create('Parent');
    atFirst(async () => {
      assert.equal((await other.keys.list({ search: 'imported', first: 1 }, OPERATOR)).keys.length, 0);
      await create('Beside');
      await other.keys.setEnabled(parent.id, false, OPERATOR);
      await other.keys.delete([old.id], OPERATOR);
    });
    const child = line('Child', { createdBy: parent.id });
    assert.equal((await load(...linesOf('Imported'), child)).imported, KEYS + 1);
    await assertWhole(KEYS + 3);
  });

  it('hides what it has inserted, and nothing else, until all is there', async () => {
    let seen: unknown;
    onProgress = async () => {
      if (seen !== undefined) return;
      await create('During');
      const names = (await other.keys.list({ first: 10 }, OPERATOR)).keys.map(({ name }) => name);
      const found = (await other.keys.list({ search: 'during' }, OPERATOR)).keys.length;
      const digest = readDigest(line('Imported 0').sha256)!;
      seen = [names, found, await other.store.repository.findByDigest(digest), await countKeys(other.store.repository)];
    };
    assert.equal((await load(...linesOf('Imported'))).imported, KEYS);
    assert.deepEqual(seen, [['During'], 1, undefined, 1]);
    await assertWhole(KEYS + 1);
  });

  it('is found by searches, and by servers that have asked for its secrets before', async () => {
    const before = other.store.repository.revision()!;
    assert.equal((await load(...linesOf('Imported', MANY))).imported, MANY);
    const { keys } = await other.keys.list({ search: 'imported 4499' }, OPERATOR);
    assert.deepEqual(
      keys.map(({ name }) => name),
      ['Imported 4499'],
    );
    if (connection.dialect === 'sqlite') assert.equal(other.store.repository.keysChangedSince(before), 'any');
    await create('Later');
    assert.equal((await other.keys.list({ search: 'later' }, OPERATOR)).keys.length, 1);
  });

  it('notes few keys one by one, so that others are remembered', async () => {
    if (connection.dialect === 'postgres') return; // Which announces no new keys.
    await create('Known');
    const before = other.store.repository.revision()!;
    const { lines } = await load(...linesOf('Imported', 3));
    other.store.repository.revision();
    const changed = other.store.repository.keysChangedSince(before);
    assert.ok(changed !== 'any');
    assert.deepEqual(changed.toSorted(), lines.map(({ id }) => id!).toSorted());
  });

  it('writes entries in the order of its lines, after those of others', async () => {
    atFirst(() => create('Beside'));
    await load(...linesOf('Imported', 30));
    const log = await other.keys.audit.read({ first: 40 }, OPERATOR);
    assert.deepEqual(
      log.toReversed().map(({ action, apiKey: key, actor }) => `${action} ${key!.name} ${actor.name}`),
      ['CREATE Beside tester', ...Array.from({ length: 30 }, (_, index) => `IMPORT Imported ${index} tester`)],
    );
    await assertWhole(31);
  });

  it('is refused as a whole for a name that was taken meanwhile', async () => {
    const takes = async () => {
      await create('Imported 7');
    };
    // In PostgreSQL, it waits until the import gives way.
    let taken: Promise<void> | undefined;
    onProgress = async () => {
      if (dialect === 'sqlite' || taken) return;
      taken = takes();
      await until(async () => (await waiting()) > 0);
    };
    if (dialect === 'sqlite') atFirst(() => (taken = takes()));
    const report = await load(...linesOf('Imported'));
    await taken;
    assert.deepEqual([report.imported, report.failed, codes(report)], [0, 1, ['NAME_TAKEN']]);
    await assertWhole(1);
  });

  it('is refused for a previous secret that another key has got meanwhile', async () => {
    const { apiKey: key } = await create('Rotated');
    atFirst(() =>
      other.store.repository.write(async (writer) => {
        const before = (await writer.findById(key.id))!;
        const previousDigest = readDigest(line('Imported 7').sha256)!;
        const rotation = { previousPublicId: 'x', startedAt: 0, grace: 1, previousEndsAt: 1 };
        await writer.update([{ before, after: { ...before, previousDigest, rotation } }]);
        await writer.appendToAuditLog([
          {
            at: 0,
            actor: { kind: 'CLI', id: null, name: null },
            action: 'ROTATE',
            apiKey: { id: key.id, name: key.name },
            before: {},
            after: {},
          },
        ]);
      }),
    );
    assert.deepEqual(codes(await load(...linesOf('Imported', 10))), ['SECRET_TAKEN']);
  });

  it('is refused where a creator was deleted meanwhile', async () => {
    const { apiKey: key } = await create('Parent');
    let deleted: Promise<unknown> | undefined;
    atFirst(async () => {
      deleted = other.keys.delete([key.id], OPERATOR);
      // In PostgreSQL, it waits until the import gives way.
      await (dialect === 'sqlite' ? deleted : until(async () => (await waiting()) > 0));
    });
    assert.deepEqual(codes(await load(line('Child', { createdBy: key.id }))), ['NOT_FOUND']);
    await deleted;
    await assertWhole(0);
  });

  it('warns of a name that looks like one that was made meanwhile', async () => {
    atFirst(() => create('lmported 7'));
    const report = await load(...linesOf('Imported', 10));
    assert.equal(report.imported, 10);
    assert.deepEqual(
      report.lines.flatMap(({ warnings }) => warnings.map(({ code }) => code)),
      ['NAME_CONFUSABLE'],
    );
  });

  it('imports beside another import, whichever ends first', async () => {
    let others: Promise<ImportReport> | undefined;
    atFirst(async () => void (others = other.keys.transfer.import(jsonLines(...linesOf('Other')))));
    assert.equal((await load(...linesOf('Imported'))).imported, KEYS);
    assert.equal((await others!).imported, KEYS);
    await assertWhole(2 * KEYS);
  });

  it('imports the same keys once, where two do so at once', async () => {
    const lines = linesOf('Imported');
    let others: Promise<ImportReport> | undefined;
    atFirst(async () => void (others = other.keys.transfer.import(jsonLines(...lines))));
    const reports = [await load(...lines), await others!];
    assert.deepEqual(
      reports.map(({ imported }) => imported).toSorted((one, other) => one - other),
      [0, KEYS],
    );
    const refused = reports.find(({ imported }) => imported === 0)!;
    // The other one may end while it looks.
    for (const code of codes(refused)) assert.ok(['NAME_TAKEN', 'SECRET_TAKEN'].includes(code), code);
    assert.ok(refused.failed > 0);
    await assertWhole(KEYS);
  });

  it('counts the keys that its creators have got meanwhile', async () => {
    const { principal: creator } = await createPrincipal(other.keys, { name: 'Parent', roles: ['ADMIN'] });
    importer = importerWith(createCatalog({ policy: { maxKeysPerCreator: 3 } }));
    const children = ['One', 'Two', 'Three'].map((name) => line(name, { createdBy: creator.apiKey.id }));
    atFirst(() => other.keys.create({ name: 'Beside', roles: ['GUEST'] }, creator));
    assert.deepEqual(codes(await load(...children)), ['POLICY_VIOLATED']);
    await assertWhole(2);
    assert.equal((await load(...children.slice(1))).imported, 2);
  });

  it('leaves nothing when it fails half-way', async () => {
    atFirst(() => Promise.reject(new KeysError('STORE_FULL', 'The disk is full.')));
    await assert.rejects(load(...linesOf('Imported')), { code: 'STORE_FULL' });
    await assertWhole(0);
  });

  it('writes the entry of a key before that is changed or deleted, where it was killed before it did', async () => {
    isKilledAfterwards = true;
    await load(...linesOf('Imported', 5));
    const { keys } = await other.keys.list({ first: 5 }, OPERATOR);
    const byName = new Map(keys.map(({ name, id }) => [name, id]));
    const [first, second, third] = [0, 1, 2].map((index) => byName.get(`Imported ${index}`)!) as [
      string,
      string,
      string,
    ];
    assert.deepEqual(await other.keys.audit.read({ first: 5 }, OPERATOR), []);
    assert.deepEqual((await other.keys.audit.check()).comparison!.differences, []);
    await other.keys.setEnabled(second, false, OPERATOR);
    await other.keys.delete([third, first], OPERATOR);
    const log = await other.keys.audit.read({ first: 9 }, OPERATOR);
    const actions = Map.groupBy(log.toReversed(), ({ apiKey: key }) => key!.id);
    assert.deepEqual(
      [first, second, third].map((id) => actions.get(id)!.map(({ action }) => action)),
      [
        ['IMPORT', 'DELETE'],
        ['IMPORT', 'DISABLE'],
        ['IMPORT', 'DELETE'],
      ],
    );
    assert.equal(log.length, 6);
    await other.keys.transfer.finishImports();
    await assertWhole(3);
  });

  it('has no entry for what only says that it was imported, in a log with a key', async () => {
    const file = join(tempFolder(), 'audit.key');
    writeFileSync(file, 'a'.repeat(64), { mode: 0o600 });
    const { keys, store, database, time } = await openTestKeys({ env: { SVC_API_AUDIT_KEY: file } });
    await keys.create({ name: 'First', roles: ['GUEST'] }, OPERATOR);
    const planted = idOf('planted');
    await changeDirectly(
      database,
      `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at)
        values ('${planted}', 'Planted', '["ADMIN"]', '[]', 'p', 'd', ${time.now})`,
      `insert into imports values (1, ${time.now}, 'tester', 0, 1)`,
      `insert into import_entries values (1, 1, '${planted}', '${'a'.repeat(64)}')`,
    );
    const isFound = async () => (await keys.audit.check()).comparison!.differences.map(({ id }) => id);
    assert.deepEqual(await isFound(), [planted]);
    await keys.transfer.finishImports();
    assert.deepEqual(await isFound(), [planted]);
    assert.equal((await keys.audit.read({ first: 9 }, OPERATOR)).length, 1);
    await store.close();
  });
});
