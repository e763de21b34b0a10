import assert from 'node:assert/strict';
import { packageVersion } from '../../../src/version.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { writeUses } from '../../../src/keys/authentication/activity.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import { destinationOf, noticesOf, testCourier, type TestCourier } from '../../support/couriers.ts';
import { damageKey } from '../../support/damage.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, unlockAuditLog } from '../../support/direct.ts';
import { authenticate, createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { noteLeak } from '../../support/leak.ts';
import { Receiver, stopReceivers } from '../../support/webhook.ts';

describeOnEach('a webhook is notified of', () => {
  let test: TestKeys;
  let receiver: Receiver;
  let server: TestCourier;
  const { d, h } = UNIT_MS;
  const pass = (ms: number) => {
    test.time.now += ms;
    return server.run();
  };
  const create = (name: string, expiresIn?: string) =>
    test.keys.create({ name, roles: ['VIEWER'], ...(expiresIn && { expiresIn }) }, OPERATOR);
  /** Types with names, and the days if there are any. */
  const told = () =>
    receiver.received.map(({ type, data }) =>
      [type, data['name'], ...('days' in data ? [data['days']] : [])].join(' '),
    );

  beforeEach(async () => {
    test = await openTestKeys();
    receiver = await Receiver.start();
    server = testCourier(test, destinationOf(receiver));
  });
  afterEach(async () => {
    await server.dispatcher.stop();
    await test.store.close();
    await stopReceivers();
  });

  it('the creation and deletion of a key, and by whom', async () => {
    await server.run();
    const { apiKey: key } = await create('CI', '90d');
    await pass(1000);
    await test.keys.delete([key.id], OPERATOR);
    await pass(1000);
    const at = new Date(test.time.now - 2000).toISOString();
    const data = {
      id: key.id,
      name: 'CI',
      prefix: `svc_${key.publicId}_…`,
      roles: ['VIEWER'],
      permissions: [],
      createdBy: null,
      expiresAt: new Date(test.time.now - 2000 + 90 * d).toISOString(),
      actor: { kind: 'CLI', id: null, name: 'tester' },
    };
    assert.deepEqual(
      receiver.received.map(({ type, timestamp, data }) => ({ type, timestamp, data })),
      [
        { type: 'key.created', timestamp: at, data: { ...data, action: 'CREATE', entry: 1 } },
        {
          type: 'key.deleted',
          timestamp: new Date(test.time.now - 1000).toISOString(),
          data: { ...data, action: 'DELETE', entry: 2 },
        },
      ],
    );
    assert.match(receiver.received[0]!.id, /^msg_[0-9a-f]{32}$/);
    assert.equal(receiver.received[0]!.headers['user-agent'], `svc-api/${packageVersion()}`);
    assert.equal(receiver.received[0]!.headers['content-type'], 'application/json');
    assert.equal(receiver.forged, 0);
  });

  it('nothing from before there was a webhook', async () => {
    await create('Older', '14d');
    await server.run();
    await create('Newer');
    await pass(1000);
    assert.deepEqual(told(), ['key.created Newer']);
  });

  it('a key that was overwritten, deleted with its creator, or asked for by a key', async () => {
    await server.run();
    const admin = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    await test.keys.create({ name: 'Child', roles: ['VIEWER'] }, admin.principal);
    await test.keys.create({ name: 'Admin', roles: ['ADMIN'], overwrite: true }, OPERATOR);
    await pass(1000);
    assert.deepEqual(told().toSorted(), [
      'key.created Admin',
      'key.created Admin',
      'key.created Child',
      'key.deleted Admin',
      'key.deleted Child',
    ]);
    assert.deepEqual(receiver.received.map(({ data }) => String(data['action'])).toSorted(), [
      'CREATE',
      'CREATE',
      'CREATE',
      'DELETE',
      'DELETE',
    ]);
  });

  it('a key that ends: 14, 3 and 1 days before, and then, once each', async () => {
    await server.run();
    await create('Month', '30d');
    for (let hours = 0; hours < 31 * 24; hours += 6) await pass(6 * h);
    assert.deepEqual(told(), [
      'key.created Month',
      'key.ending Month 14',
      'key.ending Month 3',
      'key.ending Month 1',
      'key.ended Month',
    ]);
    const [, ending] = receiver.received;
    assert.equal(Date.parse(String(ending!.data['expiresAt'])) - Date.parse(ending!.timestamp), 14 * d);
  });

  it('not that a key ends in 14 days which had two when it was made', async () => {
    await server.run();
    await create('Short', '2d');
    for (let hours = 0; hours < 3 * 24; hours += 6) await pass(6 * h);
    assert.deepEqual(told(), ['key.created Short', 'key.ending Short 1', 'key.ended Short']);
  });

  it('a changed expiry as a new one', async () => {
    await server.run();
    const { apiKey: key } = await create('Longer', '5d');
    await pass(1000);
    await pass(3 * d);
    await test.keys.update(key.id, { expiresIn: '5d' }, OPERATOR);
    for (let hours = 0; hours < 6 * 24; hours += 6) await pass(6 * h);
    assert.deepEqual(told(), [
      'key.created Longer',
      'key.ending Longer 3',
      'key.ending Longer 3',
      'key.ending Longer 1',
      'key.ended Longer',
    ]);
    assert.notEqual(receiver.received[1]!.id, receiver.received[2]!.id);
  });

  it('only what still holds, after a week without a server', async () => {
    await server.run();
    await create('Gone', '4d');
    await create('Soon', '9d');
    await create('Far', '18d');
    const { apiKey: key } = await create('Disabled', '9d');
    await test.keys.setEnabled(key.id, false, OPERATOR);
    await pass(1000);
    await pass(7 * d);
    assert.deepEqual(told().slice(4).toSorted(), ['key.ended Gone', 'key.ending Far 14', 'key.ending Soon 3']);
  });

  it('no history after more than a month without a server', async () => {
    await server.run();
    test.time.now += 31 * d;
    await create('Meanwhile', '20d');
    await server.run();
    await create('Now');
    await pass(1000);
    assert.deepEqual(told(), ['key.created Now']);
  });

  it('a key whose secret was found, with the prefix and the place of it', async () => {
    await server.run();
    const { apiKey: key } = await create('Leaky');
    await pass(1000);
    await noteLeak(test, key, 'logs/app.txt:3:4');
    await pass(1000);
    assert.deepEqual(told(), ['key.created Leaky', 'key.leaked Leaky']);
    const prefix = `svc_${key.publicId}_…`;
    assert.deepEqual(receiver.received[1]!.data, {
      id: key.id,
      name: 'Leaky',
      secret: prefix,
      place: 'logs/app.txt:3:4',
      actor: { kind: 'CLI', id: null, name: 'tester' },
      action: 'LEAK',
      entry: 2,
    });
    assert.equal((await test.keys.audit.check()).comparison!.differences.length, 0);
  });

  it('a key that is refused often, once an hour', async () => {
    server.destination = destinationOf(receiver, { refusedOften: 5 });
    await server.run();
    const { apiKey: key, key: secret } = await create('Loud');
    const { key: quiet } = await create('Quiet');
    await test.keys.setEnabled(key.id, false, OPERATOR);
    const refuse = async (count: number) => {
      for (let index = 0; index < count; index += 1) await authenticate(test.keys, secret);
      await authenticate(test.keys, quiet);
      await test.keys.finishActivity();
    };
    test.time.now += 10 * UNIT_MS.m;
    await refuse(4);
    await pass(UNIT_MS.m);
    assert.deepEqual(receiver.of('key.refused_often'), []);
    await refuse(3);
    await pass(UNIT_MS.m);
    await refuse(9);
    await pass(UNIT_MS.m);
    const [notice, ...others] = receiver.of('key.refused_often');
    assert.equal(others.length, 0);
    assert.deepEqual(notice!.data, {
      id: key.id,
      name: 'Loud',
      prefix: `svc_${key.publicId}_…`,
      createdBy: null,
      since: '2030-01-01T00:00:00.000Z',
      forbidden: 0,
      limited: 0,
      refused: 7,
    });
    test.time.now += h;
    await refuse(5);
    await pass(UNIT_MS.m + 1);
    assert.equal(receiver.of('key.refused_often').length, 2);
  });

  it('of at most 100 keys that are refused often within an hour', async () => {
    server.destination = destinationOf(receiver, { refusedOften: 1 });
    await server.run();
    const keys = Array.from({ length: 150 }, (_, index) => storedKey(`${index}`));
    await test.store.repository.write(async (writer) => {
      await writer.insert(keys);
      const hours = [{ start: test.time.now, accepted: 0, forbidden: 1, limited: 0, refused: 0 }];
      await writeUses(
        writer,
        keys.map(({ id }) => ({
          id,
          uses: 0,
          lastUsedAt: test.time.now,
          previousLastUsedAt: null,
          permissions: [],
          hours,
        })),
        test.options.listeners,
      );
    });
    for (let count = 0; count < 5; count += 1) await pass(5 * UNIT_MS.m);
    assert.equal(receiver.received.length, 100);
  });

  it('only the events that are wanted', async () => {
    server.destination = destinationOf(receiver, { events: ['key.deleted'] });
    await server.run();
    const { apiKey: key } = await create('CI');
    await test.keys.delete([key.id], OPERATOR);
    await pass(1000);
    assert.deepEqual(told(), ['key.deleted CI']);
  });

  it('of many thousands of keys that end at the same moment, each once', async () => {
    await server.run();
    const expiresAt = test.time.now + 20 * d;
    const keys = Array.from({ length: 1203 }, (_, index) =>
      storedKey(`Key ${index}`, { createdAt: test.time.now, expiresAt }),
    );
    await test.store.repository.write((writer) => writer.insert(keys));
    await pass(6 * d + h);
    for (let count = 0; count < 20; count += 1) await pass(1000);
    assert.equal(receiver.received.length, 1203);
    assert.equal(new Set(receiver.received.map(({ id }) => id)).size, 1203);
    assert.deepEqual(new Set(receiver.types), new Set(['key.ending']));
  });

  it('nothing of an entry that was pruned, since it stays until it was noticed', async () => {
    await server.run();
    await create('Old');
    test.time.now += 2 * d;
    assert.equal(await test.keys.audit.prune('1d'), undefined);
    await server.run();
    assert.deepEqual(told(), ['key.created Old']);
    assert.equal((await test.keys.audit.prune('1d'))?.entries, 1);
  });

  it('nothing that waited for longer than a month without a server', async () => {
    receiver.answer = (response) => void response.writeHead(500).end();
    await server.run();
    await create('Old');
    await pass(1000);
    const { length } = receiver.received;
    receiver.answer = (response) => void response.writeHead(204).end();
    await pass(31 * d);
    assert.equal(receiver.received.length, length);
    assert.equal((await noticesOf(test).status())!.waiting, 0);
  });

  it('the others, where an entry of the log or a key is damaged', async () => {
    await server.run();
    for (const name of ['First', 'Second', 'Third', 'Fourth']) await create(name, '30d');
    await unlockAuditLog(test.database);
    await changeDirectly(
      test.database,
      `update audit_log set at = 9000000000000000 where key_name = 'First'`,
      `update audit_log set after = '[' where key_name = 'Second'`,
      `update audit_log set after = '7', actor_kind = 'x' where key_name = 'Third'`,
    );
    await damageKey(test.database, 'First', `permissions = '['`);
    await damageKey(test.database, 'Second', `created_at = -9000000000000000`);
    await pass(1000);
    assert.deepEqual(
      told().toSorted(),
      ['First', 'Fourth', 'Second', 'Third'].map((name) => `key.created ${name}`),
    );
    await pass(16 * d + h);
    assert.deepEqual(told().slice(4).toSorted(), ['key.ending Fourth 14', 'key.ending Third 14']);
  });
});
