import assert from 'node:assert/strict';
import { noticeMetrics } from '../../src/features/notices/metrics.ts';
import { aggregated, Metrics, type Sample } from '../../src/features/telemetry/metrics.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { RETRY_MS } from '../../src/features/notices/notice.ts';
import { destinationOf, noticesOf, testCourier } from '../support/couriers.ts';
import { parseExposition, valueOf } from '../support/exposition.ts';
import { openTestKeys } from '../support/keys.ts';
import { Receiver, stopReceivers } from '../support/webhook.ts';

describe('metrics of notices', () => {
  it('count them, once there is a webhook: attempts by result, waiting and dropped ones', async () => {
    const metrics = new Metrics();
    const test = await openTestKeys({ asServer: true });
    const scrape = async () => parseExposition(await metrics.text());
    const ofNotices = async () => [...(await scrape()).keys()].filter((name) => name.includes('notice'));
    assert.deepEqual(await ofNotices(), []);
    const receiver = await Receiver.start();
    const server = testCourier(test, destinationOf(receiver));
    const { dispatcher } = server;
    const run = () => server.run();
    const notices = noticesOf(test);
    let isWebhook = true;
    const countWaiting = async () => (isWebhook ? notices.countWaiting() : undefined);
    metrics.add('notices', noticeMetrics({ counts: dispatcher.counts, countWaiting }));
    const values = async () => {
      const families = await scrape();
      const attempts = (result: string) => valueOf(families, 'svc_api_notice_attempts_total', { result });
      const others = ['svc_api_notices_given_up_total', 'svc_api_notices_waiting'];
      return [attempts('delivered'), attempts('failed'), ...others.map((name) => valueOf(families, name))];
    };
    assert.deepEqual(await values(), [0, 0, 0, 0]);
    await run();
    await test.keys.create({ name: 'Taken', roles: ['GUEST'] }, OPERATOR);
    test.time.now += 1000;
    await run();
    assert.deepEqual(await values(), [1, 0, 0, 0]);
    receiver.answer = (response) => void response.writeHead(500).end();
    for (const name of ['One', 'Two']) await test.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
    test.time.now += 1000;
    await run();
    const [, failed, givenUp, waiting] = await values();
    assert.ok(failed! >= 1 && failed! <= 2, String(failed));
    assert.deepEqual([givenUp, waiting], [0, 2]);
    for (const wait of [...RETRY_MS, ...RETRY_MS])
      for (let time = 0; time < 2; time += 1) {
        test.time.now += wait / 2;
        await run();
      }
    await run();
    assert.deepEqual(await values(), [1, 16, 2, 0]);
    isWebhook = false;
    assert.deepEqual(await values(), [1, 16, 2, undefined]);
    await dispatcher.stop();
    await test.store.close();
    await stopReceivers();
  });

  it('are there while the store does not say how many notices wait, which it is asked once', async () => {
    let asked = 0;
    const never = () => {
      asked += 1;
      return new Promise<never>(() => {});
    };
    const metrics = new Metrics();
    metrics.add('notices', noticeMetrics({ counts: { delivered: 1, failed: 0, givenUp: 0 }, countWaiting: never }));
    for (const text of await Promise.all([metrics.text(), metrics.text()])) {
      const families = parseExposition(text);
      assert.equal(valueOf(families, 'svc_api_notice_attempts_total', { result: 'delivered' }), 1);
      assert.equal(valueOf(families, 'svc_api_notices_waiting'), undefined);
    }
    assert.equal(asked, 1);
  });

  it('of several processes are summed up, and one process has counted for all what waits', async () => {
    const counts = { delivered: 2, failed: 0, givenUp: 0 };
    const samplesOf = async (waiting: number | undefined) => {
      const metrics = new Metrics();
      metrics.add('notices', noticeMetrics({ counts, countWaiting: async () => waiting }));
      return JSON.parse(JSON.stringify(await metrics.collect(true))) as Sample[];
    };
    const processes = [await samplesOf(3), await samplesOf(undefined)];
    const families = parseExposition(await aggregated(processes).metrics());
    assert.equal(valueOf(families, 'svc_api_notice_attempts_total', { result: 'delivered' }), 4);
    assert.equal(valueOf(families, 'svc_api_notices_waiting'), 3);
  });
});
