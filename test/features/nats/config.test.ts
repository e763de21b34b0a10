import assert from 'node:assert/strict';
import { parseConfig } from '../../../src/config/load-config.ts';
import { faultsIn } from '../../support/config-faults.ts';

describe('a feed by NATS in the configuration', () => {
  it('has servers, without secrets in their addresses', async () => {
    const wrong: [text: string, message: RegExp][] = [
      ['feed: {}', /"nats"/],
      ['feed: { nats: {} }', /"servers"/],
      ['feed: { nats: { servers: [] } }', /"servers" is empty/],
      ['feed: { nats: { servers: [https://x] } }', /"https:\/\/x" is not a server/],
      ['feed: { nats: { servers: ["nats://a:b@x"] } }', /is not a server/],
      ['feed: { nats: { servers: [nats://x/y] } }', /is not a server/],
      ['feed: { nats: { servers: [nats://x], name: a.b } }', /"name"/],
      ['feed: { nats: { servers: [nats://x], credentials: x } }', /"credentials"/],
      ['feed: { nats: { servers: [nats://x], credentials: {} } }', /"file"/],
      ['feed: { nats: { servers: [nats://x], credentials: { file: "" } } }', /"file"/],
      ['feed: { nats: { servers: [nats://x], server: y } }', /"server"/],
      ['feed: { kafka: {} }', /"kafka"/],
    ];
    for (const [text, message] of wrong) assert.match((await faultsIn(text)).join('\n'), message, text);
    const { feed } = await parseConfig({ path: '/f', text: 'feed: { nats: { servers: [nats://x] } }' });
    assert.deepEqual(feed, { nats: { servers: ['nats://x'], credentials: undefined, name: 'svc-api' } });
  });
});
