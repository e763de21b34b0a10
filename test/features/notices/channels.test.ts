import assert from 'node:assert/strict';
import { attempt, type Destination, readDestination } from '../../../src/features/notices/destination.ts';
import { DEFAULT_NOTICES } from '../../../src/features/notices/notice.ts';
import { testCourier } from '../../support/couriers.ts';
import { openTestKeys } from '../../support/keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';

const settings = { url: 'https://ntfy.example.org/keys', secretFile: undefined, channel: 'ntfy', ...DEFAULT_NOTICES };
const channelWith = (send: Destination['send']) => [
  { name: 'svc-api-ntfy', notices: { ntfy: async () => ({ open: () => send }) } },
];
const destinationWith = (send: Destination['send']) => readDestination(settings, {}, channelWith(send));
const notice = { id: 'msg_1', type: 'test', body: '{}' } as const;

describe('a channel of notices', () => {
  it('that fails says the cause, which `fetch` hides', async () => {
    const cause = new Error('connect ECONNREFUSED 127.0.0.1:9');
    const destination = await destinationWith(() => Promise.reject(new TypeError('fetch failed', { cause })));
    const answer = await attempt(destination, notice, { signal: new AbortController().signal });
    assert.deepEqual(answer.is === 'failed' && answer.failure, 'fetch failed (connect ECONNREFUSED 127.0.0.1:9)');
  });

  it('gets each notice until it does not throw, under the same id and in order', async () => {
    const test = await openTestKeys({ asServer: true });
    const sent: string[] = [];
    let isDown = true;
    const destination = await destinationWith(async ({ id, body }) => {
      sent.push(`${id} ${(JSON.parse(body) as { data: { name: string } }).data.name}`);
      if (isDown) throw new Error('it is down');
    });
    const server = testCourier(test, destination);
    await server.run();
    await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await server.run();
    assert.equal(server.log.at(-1)!.fields['reason'], 'it is down');
    isDown = false;
    await test.keys.create({ name: 'Other', roles: ['GUEST'] }, OPERATOR);
    for (let pass = 0; pass < 3; pass += 1) {
      test.time.now += 3_600_000;
      await server.run();
    }
    assert.deepEqual([sent[0], sent.length], [sent[1], 3]);
    assert.match(sent[2]!, / Other$/);
    await server.dispatcher.stop();
    await test.store.close();
  });

  it('is given up after the time-out, or when the server stops', async () => {
    const hanging = await destinationWith(() => new Promise(() => {}));
    const { signal } = new AbortController();
    assert.deepEqual(
      await attempt(hanging, notice, { signal, timeoutMs: 10 }),
      failed('no answer within 0.01 seconds'),
    );
    const stopped = AbortSignal.abort();
    assert.deepEqual(await attempt(hanging, notice, { signal: stopped }), failed('the attempt was ended'));
  });

  it('names the proxy if it times out behind one', async () => {
    const hanging = await destinationWith(() => new Promise(() => {}));
    const { signal } = new AbortController();
    const before = process.env['HTTPS_PROXY'];
    process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1';
    try {
      const answer = await attempt(hanging, notice, { signal, timeoutMs: 10 });
      assert.match(JSON.stringify(answer), /no answer within 0\.01 seconds\. .*HTTPS_PROXY/);
    } finally {
      if (before === undefined) delete process.env['HTTPS_PROXY'];
      else process.env['HTTPS_PROXY'] = before;
    }
  });

  it('of an unknown name is refused', async () => {
    const features = channelWith(async () => {});
    await assert.rejects(readDestination({ ...settings, channel: 'ntfi' }, {}, features), {
      code: 'CONFIG_INVALID',
      message: /ntfi.*Did you mean "?ntfy/s,
    });
  });
});

function failed(failure: string) {
  return { is: 'failed', status: undefined, failure, retryAfterMs: undefined };
}
