import assert from 'node:assert/strict';
import { openEdge } from '../../../src/index.ts';

describe('openEdge', () => {
  it('refuses what cannot be meant', async () => {
    const [origin, token] = ['http://127.0.0.1:1', 'svc_unknown'];
    for (const options of [
      {},
      { token },
      { origin, feed: undefined, token },
      { origin },
      { origin, token, tokenFile: 'also' },
      { origin, token: 'a b' },
      { origin, token, maxStale: '10ms' },
      { origin, token, clientCert: 'only' },
      { origin: 'http://keys.example.org', token },
      { origin: 'keys.example.org', token },
      { origin: `${origin}/?a`, token },
      { origin, token, stale: '1s' },
      { origin, token, roles: { A: ['NO:SUCH'] } },
    ])
      await assert.rejects(openEdge(options as { origin: string }), /^KeysError/, JSON.stringify(options));
  });
});
