import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { RETRY_MS } from '../../../src/features/notices/notice.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import { NoticeDelivery } from '../../../src/features/notices/delivery.ts';
import { NO_LOG } from '../../../src/log.ts';
import { endpointOf } from '../../../src/features/notices/dispatcher.ts';
import { destinationOf, noticesOf, testCourier, type TestCourier } from '../../support/couriers.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { idOf, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { until } from '../../support/until.ts';
import { newNoticeSecret, Receiver, stopReceivers } from '../../support/webhook.ts';

describeOnEach('the delivery of notices', () => {
  let test: TestKeys;
  let receiver: Receiver;
  let server: TestCourier;
  const { s, h } = UNIT_MS;
  const pass = (ms: number) => {
    test.time.now += ms;
    return server.run();
  };
  const create = (name: string) => test.keys.create({ name, roles: ['VIEWER'] }, OPERATOR);
  const waiting = async () => {
    await server.run();
    return (await noticesOf(test).status())!.waiting;
  };
  const attempts = () => receiver.received.length;

  beforeEach(async () => {
    test = await openTestKeys();
    receiver = await Receiver.start();
    server = testCourier(test, destinationOf(receiver));
    await server.run();
  });
  afterEach(async () => {
    await server.dispatcher.stop();
    await test.store.close();
    await stopReceivers();
  });

  it('is repeated with the same id and text until it is taken', async () => {
    receiver.answer = (response) => void response.writeHead(500).end('x');
    await create('CI');
    await pass(1000);
    assert.equal(attempts(), 1);
    await pass(2 * s);
    assert.equal(attempts(), 1);
    await pass(3 * s);
    assert.equal(attempts(), 2);
    receiver.answer = (response) => void response.writeHead(200).end();
    await pass(5 * UNIT_MS.m);
    const [first, ...others] = receiver.received;
    assert.equal(others.length, 2);
    for (const { id, body } of others) assert.deepEqual([id, body], [first!.id, first!.body]);
    await pass(30 * h);
    assert.equal(attempts(), 3);
    assert.equal(await waiting(), 0);
  });

  it('is given up after its last attempt, with an error that has only the origin of the address', async () => {
    receiver.answer = (response) => void response.writeHead(503).end();
    await create('CI');
    await pass(1000);
    for (const wait of RETRY_MS) await pass(wait);
    assert.equal(attempts(), RETRY_MS.length + 1);
    assert.equal(await waiting(), 0);
    const { level, message, fields } = server.log.at(-1)!;
    assert.deepEqual(
      { level, message, fields },
      {
        level: 'error',
        message: 'a notice could not be delivered, and is given up',
        fields: {
          webhook: `http://127.0.0.1:${receiver.port}`,
          notice: receiver.received[0]!.id,
          type: 'key.created',
          attempt: 8,
          reason: 'the answer was 503',
        },
      },
    );
    assert.equal(JSON.stringify(server.log).includes('t0ken'), false);
    assert.deepEqual(server.dispatcher.counts, { delivered: 0, failed: 8, givenUp: 1 });
  });

  it('waits for as long as the receiver asks for, an hour at most', async () => {
    receiver.answer = (response) => void response.writeHead(429, { 'Retry-After': '120' }).end();
    await create('CI');
    await pass(1000);
    await create('Other');
    await pass(119 * s);
    assert.equal(attempts(), 1);
    receiver.answer = (response) => void response.writeHead(503, { 'Retry-After': '999999999' }).end();
    await pass(s);
    assert.equal(attempts(), 2);
    receiver.answer = (response) => void response.writeHead(204).end();
    await pass(h);
    assert.deepEqual(receiver.received.slice(2).length, 2);
  });

  it('ends for a receiver that is gone, until another address, or until it wants notices again', async () => {
    receiver.answer = (response) => void response.writeHead(410).end();
    for (const name of ['One', 'Two', 'Three', 'Four', 'Five', 'Six']) await create(name);
    await pass(1000);
    const sent = attempts();
    assert.ok(sent >= 1 && sent <= 4, String(sent));
    await create('Seven');
    await pass(20 * s);
    assert.deepEqual([attempts(), await waiting()], [sent, 0]);
    assert.equal((await noticesOf(test).status())!.gone, endpointOf(receiver.url));
    assert.equal(server.log.filter(({ level }) => level === 'error').length, 1);
    receiver.answer = (response) => void response.writeHead(204).end();
    await noticesOf(test).forgetGone();
    await pass(20 * s);
    await create('Eight');
    await pass(s);
    assert.deepEqual(
      receiver.received.slice(sent).map(({ data }) => data['name']),
      ['Eight'],
    );
  });

  it('follows no redirect', async () => {
    const other = await Receiver.start(receiver.secret);
    receiver.answer = (response) => void response.writeHead(307, { Location: other.url }).end();
    await create('CI');
    await pass(1000);
    assert.deepEqual([attempts(), other.received.length, await waiting()], [1, 0, 1]);
    assert.equal(server.log.at(-1)!.fields['reason'], 'the answer was 307, a redirect, which is not followed');
  });

  it('reads nothing of an answer but its head, however long that goes on', async () => {
    let written = 0;
    receiver.answer = (response) => {
      response.writeHead(200);
      const more = () => {
        written += 65_536;
        if (!response.destroyed && written < 100_000_000) response.write(Buffer.alloc(65_536), more);
      };
      more();
    };
    await create('CI');
    await pass(1000);
    assert.equal(await waiting(), 0);
    assert.ok(written < 50_000_000, String(written));
  });

  it('takes no head of an answer that is too large', async () => {
    receiver.answer = (response) => void response.writeHead(200, { 'X-Large': 'x'.repeat(60_000) }).end();
    await create('CI');
    await pass(1000);
    assert.equal(server.log.at(-1)!.fields['reason'], 'HPE_HEADER_OVERFLOW');
  });

  it('fails without a listener, and without an answer in time', async () => {
    await server.dispatcher.stop();
    server = testCourier(test, destinationOf(receiver), { timeoutMs: 50 });
    receiver.answer = () => {};
    await create('CI');
    await pass(1000);
    assert.equal(server.log.at(-1)!.fields['reason'], 'no answer within 0.05 seconds');
    await server.dispatcher.stop();
    server = testCourier(test, destinationOf(receiver));
    await receiver.stop();
    await pass(5 * s);
    assert.equal(server.log.at(-1)!.fields['reason'], 'ECONNREFUSED');
  });

  it('is signed by each secret, so that a receiver can take another one', async () => {
    const next = newNoticeSecret();
    server.destination = destinationOf({ url: receiver.url, secret: `${receiver.secret} ${next}` } as Receiver);
    await create('CI');
    await pass(1000);
    receiver.secret = next;
    await create('Other');
    await pass(1000);
    assert.deepEqual([attempts(), receiver.forged], [2, 0]);
    assert.match(String(receiver.received[0]!.headers['webhook-signature']), /^v1,\S{44} v1,\S{44}$/);
    server.destination = destinationOf({ url: receiver.url, secret: newNoticeSecret() } as Receiver);
    await create('Third');
    await pass(1000);
    assert.deepEqual([attempts(), receiver.forged], [2, 1]);
  });

  it('is made by one of several servers, and goes on when that one dies', async () => {
    const other = testCourier(test, destinationOf(receiver));
    await other.run();
    assert.deepEqual([server.dispatcher.isHolder, other.dispatcher.isHolder], [true, false]);
    await create('CI');
    test.time.now += 1000;
    await Promise.all([server.run(), other.run()]);
    await Promise.all([server.run(), other.run()]);
    assert.equal(attempts(), 1);
    await create('Other');
    test.time.now += 10 * s;
    await other.run();
    assert.equal(attempts(), 1);
    test.time.now += 10 * s;
    await other.run();
    assert.deepEqual([attempts(), other.dispatcher.isHolder], [2, true]);
    await other.dispatcher.stop();
    await pass(10 * s);
    assert.equal(server.dispatcher.isHolder, true);
  });

  it('follows the server with the lease if servers name different webhooks, without repeats', async () => {
    const elsewhere = await Receiver.start();
    const other = testCourier(test, destinationOf(elsewhere, { events: ['key.created'] }));
    const names = ({ received }: Receiver) => received.map(({ type, data }) => `${type} ${String(data['name'])}`);
    const both = async () => {
      test.time.now += 1000;
      for (const each of [server, other]) await each.run();
    };
    const { apiKey: key } = await create('First');
    await both();
    assert.deepEqual([names(receiver), names(elsewhere)], [['key.created First'], []]);
    // The second channel delivers notices that the first could not. Neither sends unwanted ones.
    receiver.answer = (response) => void response.writeHead(500).end();
    await create('Second');
    await both();
    await server.dispatcher.stop();
    await test.keys.delete([key.id], OPERATOR);
    await create('Third');
    test.time.now += 5 * s;
    await both();
    assert.deepEqual(names(elsewhere).toSorted(), ['key.created Second', 'key.created Third']);
    assert.deepEqual([elsewhere.received[0]!.id, receiver.forged], [receiver.received[1]!.id, 0]);
    server = testCourier(test, destinationOf(receiver));
    await other.dispatcher.stop();
    await server.run();
    await create('Fourth');
    await both();
    assert.deepEqual(names(receiver), ['key.created First', 'key.created Second', 'key.created Fourth']);
    assert.equal(elsewhere.received.length, 2);
  });

  it('ends for a receiver that is gone only as long as no server with another webhook has the lease', async () => {
    const elsewhere = await Receiver.start();
    receiver.answer = (response) => void response.writeHead(410).end();
    await create('First');
    await pass(1000);
    assert.equal(attempts(), 1);
    await server.dispatcher.stop();
    const other = testCourier(test, destinationOf(elsewhere));
    await create('Second');
    test.time.now += 1000;
    await other.run();
    await other.dispatcher.stop();
    assert.deepEqual(
      elsewhere.received.map(({ data }) => data['name']),
      ['Second'],
    );
    server = testCourier(test, destinationOf(receiver));
    await create('Third');
    await pass(1000);
    assert.deepEqual([attempts(), await waiting()], [2, 0]);
  });

  it('that is under way when a server stops is repeated by the next one, at once', async () => {
    let arrived = 0;
    receiver.answer = () => void (arrived += 1);
    await create('CI');
    test.time.now += 1000;
    await server.dispatcher.pass();
    await until(() => arrived === 1);
    await server.dispatcher.stop();
    receiver.answer = (response) => void response.writeHead(204).end();
    const next = testCourier(test, destinationOf(receiver));
    await next.run();
    const [first, second] = receiver.received;
    assert.deepEqual([attempts(), first!.id], [2, second!.id]);
    await next.dispatcher.stop();
  });

  it('goes on at once after a server that stops while it begins', async () => {
    await server.dispatcher.stop();
    await create('CI');
    test.time.now += 1000;
    for (const start of ['begin', 'pass'] as const) {
      const notices = noticesOf(test);
      const withLease = notices.withLease.bind(notices);
      const short = testCourier(test, destinationOf(receiver));
      let stopped: Promise<void> | undefined;
      notices.withLease = async (...args) => {
        await Promise.resolve();
        stopped ??= short.dispatcher.stop();
        return withLease(...args);
      };
      await short.dispatcher[start]();
      await stopped;
      notices.withLease = withLease;
      const next = testCourier(test, destinationOf(receiver));
      await next.run();
      assert.deepEqual([next.dispatcher.isHolder, attempts()], [true, 1]);
      await next.dispatcher.stop();
    }
  });

  it('is signed by the clock of the machine, where that of the store is ahead of it', async () => {
    await server.dispatcher.stop();
    const delivery = new NoticeDelivery({
      store: noticesOf(test),
      clock: () => Date.now() + 2 * UNIT_MS.d,
      turn: Promise.resolve(),
      log: NO_LOG,
    });
    await delivery.take(destinationOf(receiver));
    await create('CI');
    await until(() => attempts() + receiver.forged > 0);
    await delivery.stop();
    assert.deepEqual([attempts(), receiver.forged], [1, 0]);
  });

  it('stops to collect more while too many notices wait; none is lost', async function () {
    receiver.answer = (response) => void response.writeHead(500).end();
    const insert = Array.from({ length: 10_500 }, (_, number) => ({
      at: test.time.now,
      actor: { kind: 'CLI' as const, id: null, name: 'tester' },
      action: 'DELETE' as const,
      apiKey: { id: idOf(`k${number}`), name: `Key ${number}` },
      before: {},
      after: null,
    }));
    await test.store.repository.write((writer) => writer.appendToAuditLog(insert));
    await pass(1000);
    const status = (await noticesOf(test).status())!;
    assert.ok(status.waiting <= 10_000 && status.waiting >= 9000, String(status.waiting));
    assert.equal(status.waiting + status.behind, 10_500);
    assert.equal(
      server.log.some(({ message }) => message.startsWith('too many notices wait')),
      true,
    );
  });

  it('sends, logs and stores no secret', async () => {
    receiver.answer = (response) => void response.writeHead(500).end(receiver.secret);
    const { key: secret, apiKey: key } = await create('CI');
    await pass(1000);
    await test.keys.delete([key.id], OPERATOR);
    await pass(1000);
    const digest = (await import('../../../src/keys/secret/secret.ts')).digestSecret(secret);
    const stored = await noticesOf(test).withLease({ holder: 'test', forMs: 0 }, async () => undefined);
    assert.equal(stored, undefined);
    const due = await noticesOf(test).due(Number.MAX_SAFE_INTEGER, 100);
    const all = JSON.stringify([
      receiver.received.map(({ body }) => body),
      server.log,
      due,
      await noticesOf(test).status(),
    ]);
    for (const hidden of [
      secret,
      secret.slice(20),
      digest,
      digest.slice(7),
      receiver.secret,
      receiver.secret.slice(6),
      't0ken',
    ])
      assert.equal(all.includes(hidden), false);
    assert.ok(due.length > 0);
  });
});
