import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { type ImportReport, STAGING } from '../../../src/keys/transfer/import.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import type { Connection } from '../../../src/store/connection.ts';
import { createKeyRepository } from '../../../src/store/key-repository.ts';
import { openConnection } from '../../../src/store/open.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { countKeys, jsonLines, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

/** More than one piece. */
const KEYS = 1500;
const PIECES = 2;
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

describeOnEach('an import that others write beside', () => {
  /** The other process. */
  let other: TestKeys;
  let connection: Connection;
  let importer: KeysService;
  /** What happens before and after each transaction of the import, by its number, counted from 1. */
  let beforeWrite: (write: number) => Promise<unknown>;
  let afterWrite: (write: number) => Promise<unknown>;

  beforeEach(async () => {
    other = await openTestKeys();
    connection = await openConnection({ database: other.database });
    let writes = 0;
    const write: Connection['write'] = async (work, options) => {
      writes += 1;
      await beforeWrite(writes);
      const result = await connection.write(work, options);
      await afterWrite(writes);
      return result;
    };
    const watched = new Proxy(connection, {
      get: (target, name) => {
        const value: unknown = name === 'write' ? write : Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    importer = new KeysService({ ...other.options, repository: createKeyRepository(watched) });
    beforeWrite = async () => {};
    afterWrite = async () => {};
  });
  afterEach(async () => {
    await connection.close();
    await other.store.close();
  });

  const load = (...lines: object[]) => importer.transfer.import(jsonLines(...lines));
  const codes = ({ lines }: ImportReport) => lines.flatMap(({ errors }) => errors.map(({ code }) => code));
  const create = (name: string) => other.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  const atFirst = (work: () => Promise<unknown>) => {
    afterWrite = async (write) => void (write === 1 && (await work()));
  };
  async function assertWhole(count: number): Promise<void> {
    assert.equal(await countKeys(other.store.repository), count);
    assert.equal(await staged(), 0);
    const verified = await other.keys.audit.verify();
    assert.ok('entries' in verified, JSON.stringify(verified));
    const { compared, differences } = await other.keys.audit.compare();
    assert.deepEqual([compared, differences], [count, []]);
  }
  const staged = async () =>
    (await connection.run((db) => db.selectFrom('staged_keys').select('position').execute())).length;

  it('lets them write between its pieces, and shows nothing until all is there', async () => {
    const seen: number[] = [];
    afterWrite = async (write) => {
      seen.push((await other.keys.list({ search: 'imported', first: 1 }, OPERATOR)).keys.length);
      await create(`Beside ${write}`);
    };
    const report = await load(...linesOf('Imported'));
    assert.equal(report.imported, KEYS);
    // Then it is inserted, and what was staged is removed.
    assert.deepEqual(seen.slice(0, PIECES + 1), [...Array.from({ length: PIECES }, () => 0), 1]);
    await assertWhole(KEYS + seen.length);
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

  it('chains its entries to one that is written just before its last transaction', async () => {
    beforeWrite = async (write) => write === 2 && create('Beside');
    assert.equal((await load(...linesOf('Imported', 30))).imported, 30);
    await assertWhole(31);
  });

  it('is refused as a whole for a name that was taken meanwhile', async () => {
    atFirst(() => create('Imported 7'));
    const report = await load(...linesOf('Imported'));
    assert.deepEqual([report.imported, report.failed, codes(report)], [0, 1, ['NAME_TAKEN']]);
    await assertWhole(1);
  });

  it('is refused for a previous secret that another key has got meanwhile', async () => {
    const { apiKey: key } = await create('Rotated');
    atFirst(() =>
      other.store.repository.write(
        async (writer) => {
          const before = (await writer.findById(key.id))!;
          const [line7] = await connection.run((db) =>
            db.selectFrom('staged_keys').select('digest').where('name', '=', 'Imported 7').execute(),
          );
          const rotation = { previousPublicId: 'x', startedAt: 0, grace: 1, previousEndsAt: 1 };
          await writer.update([{ before, after: { ...before, previousDigest: line7!.digest, rotation } }]);
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
    assert.equal(await staged(), 0);
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
    beforeWrite = async (write) => {
      if (write === 2) throw new KeysError('STORE_FULL', 'The disk is full.');
    };
    await assert.rejects(load(...linesOf('Imported')), { code: 'STORE_FULL' });
    await assertWhole(0);
  });

  it('removes what an earlier one has left', async () => {
    const entry = { at: 0, actor: { kind: 'CLI', id: null, name: null }, action: 'IMPORT' } as const;
    const keys = Array.from({ length: 1500 }, (_, index) => storedKey(`left ${index}`));
    await other.store.repository.port(STAGING).stage(keys, entry);
    assert.equal(await staged(), 1500);
    assert.equal((await load(line('One'))).imported, 1);
    await assertWhole(1);
  });
});
