import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { readDigest } from '../../../src/keys/secret/secret.ts';
import type { ImportReport } from '../../../src/keys/transfer/import.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import type { Connection } from '../../../src/store/connection.ts';
import { createKeyRepository } from '../../../src/store/key-repository.ts';
import { openConnection } from '../../../src/store/open.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { until } from '../../support/until.ts';
import { countKeys, jsonLines, openTestKeys, type TestKeys } from '../../support/keys.ts';

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
  /** What happens when all keys are inserted, in a file before that: it is locked from then on. */
  let meanwhile: (attempt: number) => Promise<unknown>;
  /** What happens when the first ones are inserted. */
  let onProgress: () => Promise<void>;

  beforeEach(async () => {
    other = await openTestKeys();
    connection = await openConnection({ database: other.database });
    let attempts = 0;
    const write: Connection['write'] = async (work, { before, ...options } = {}) => {
      const others = () => meanwhile((attempts += 1));
      if (dialect === 'sqlite') await others();
      const inserted: typeof before = async (db, keysChanged) => {
        await before!(db, keysChanged);
        if (dialect === 'postgres') await others();
      };
      return connection.write(work, { ...options, before: before && inserted });
    };
    const watched = new Proxy(connection, {
      get: (target, name) => {
        const value: unknown = name === 'write' ? write : Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    importer = new KeysService({ ...other.options, repository: createKeyRepository(watched) });
    meanwhile = async () => {};
    onProgress = async () => {};
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
    const verified = await other.keys.audit.verify();
    assert.ok('entries' in verified, JSON.stringify(verified));
    const { compared, differences } = await other.keys.audit.compare();
    assert.deepEqual([compared, differences], [count, []]);
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
      other.store.repository.write(
        async (writer) => {
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
        },
        { now: 0 },
      ),
    );
    assert.deepEqual(codes(await load(...linesOf('Imported', 10))), ['SECRET_TAKEN']);
  });

  it('is refused where a creator was deleted meanwhile', async () => {
    const { apiKey: key } = await create('Parent');
    atFirst(() => other.keys.delete([key.id], OPERATOR));
    assert.deepEqual(codes(await load(line('Child', { createdBy: key.id }))), ['NOT_FOUND']);
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
    atFirst(async () => {
      const report = await other.keys.transfer.import(jsonLines(...linesOf('Other')));
      assert.equal(report.imported, KEYS);
    });
    assert.equal((await load(...linesOf('Imported'))).imported, KEYS);
    await assertWhole(2 * KEYS);
  });

  it('leaves nothing when it fails half-way', async () => {
    atFirst(() => Promise.reject(new KeysError('STORE_FULL', 'The disk is full.')));
    await assert.rejects(load(...linesOf('Imported')), { code: 'STORE_FULL' });
    await assertWhole(0);
  });
});
