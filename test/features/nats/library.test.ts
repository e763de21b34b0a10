import assert from 'node:assert/strict';
import { openEdge } from '../../../src/index.ts';

describe('the library over a feed by NATS', () => {
  it('refuses what cannot be meant', async () => {
    const [origin, token] = ['http://127.0.0.1:1', 'svc_unknown'];
    const servers = ['nats://127.0.0.1:4222'];
    const nats = { servers };
    for (const options of [
      { origin, feed: { nats }, token },
      { origin: undefined, feed: { nats }, token },
      { feed: { nats } },
      { feed: {}, token },
      { feed: { nats: {} }, token },
      { feed: { nats: undefined }, token },
      { feed: { nats, more: 1 }, token },
      { feed: { nats: { servers: [] } }, token },
      { feed: { nats: { servers: servers[0] } }, token },
      { feed: { nats: { servers: [undefined] } }, token },
      { feed: { nats: { servers: ['http://127.0.0.1:4222'] } }, token },
      { feed: { nats: { servers: ['nats://user:secret@127.0.0.1:4222'] } }, token },
      { feed: { nats: { servers, name: 'a.b' } }, token },
      { feed: { nats: { servers, name: '' } }, token },
      { feed: { nats: { servers, credentials: {} } }, token },
      { feed: { nats: { servers, credentials: { file: '' } } }, token },
      { feed: { nats: { servers, credentials: undefined } }, token },
      { feed: { nats: { servers, credential: { file: 'a' } } }, token },
      { feed: { nats: { servers, credentials: { file: '/none' } } }, token },
      { feed: { nats }, token, ca: 'ca.pem' },
      { feed: { nats }, token, insecure: false },
      { feed: { nats }, token: 'a b' },
    ])
      await assert.rejects(openEdge(options as { origin: string }), /^KeysError/, JSON.stringify(options));
  });
});
