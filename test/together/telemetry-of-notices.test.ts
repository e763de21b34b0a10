import assert from 'node:assert/strict';
import { Metrics } from '../../src/features/telemetry/metrics.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { RETRY_MS } from '../../src/keys/feed/notice.ts';
import { destinationOf, testCourier } from '../support/couriers.ts';
import { parseExposition, valueOf } from '../support/exposition.ts';
import { openTestKeys } from '../support/keys.ts';
import { Receiver, stopReceivers } from '../support/webhook.ts';

describe('metrics of notices', () => {
  it('count them, once there is a webhook: attempts by their result, what waits, and what was given up', async () => {
    const metrics = new Metrics();
    const test = await openTestKeys({ asServer: true });
    const scrape = async () => parseExposition(await metrics.text());
    const ofNotices = async () => [...(await scrape()).keys()].filter((name) => name.includes('notice'));
    assert.deepEqual(await ofNotices(), []);
    const receiver = await Receiver.start();
    const server = testCourier(test, destinationOf(receiver));
    const { dispatcher } = server;
    const run = () => server.run();
    const { notices } = test.store;
    let isWebhook = true;
    const countWaiting = async () => (isWebhook ? notices.countWaiting() : undefined);
    metrics.measureNotices({ counts: dispatcher.counts, countWaiting });
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
});
