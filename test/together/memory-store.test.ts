import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { HttpFeed } from '../../src/features/edge/http-feed.ts';
import { openEdgeStore } from '../../src/features/edge/open-edge.ts';
import { createApp, listen } from '../../src/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { NO_LOG } from '../../src/log.ts';
import { openKeys, openKeysOver } from '../../src/service/open-keys.ts';
import { runCliHere } from '../support/cli-here.ts';
import { authenticate } from '../support/keys.ts';

describe('a store in memory', () => {
  it('is followed by edges', async () => {
    const keys = await openKeys({ database: ':memory:' });
    const { key: token } = await keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR);
    const { key: secret, apiKey: key } = await keys.create({ name: 'A', roles: ['GUEST'] }, OPERATOR);
    const server = await listen({ app: await createApp({ keys }), host: '127.0.0.1', port: 0 });
    const store = await openEdgeStore(new HttpFeed({ origin: server.url, token, leaseMs: 60_000, log: NO_LOG }));
    const edge = openKeysOver(store, createCatalog({}));
    assert.equal('principal' in (await authenticate(edge, secret)), true);
    await keys.delete([key.id], OPERATOR);
    assert.equal('principal' in (await authenticate(edge, secret)), false);
    await edge.close();
    await server.stop();
    await keys.close();
  });

  it('is refused by commands of features, for which it would be gone at once', async () => {
    for (const [args, env] of [
      [['guard', 'http://127.0.0.1:3000', '--permission', 'ME:READ_OWN', '--database', ':memory:'], {}],
      [['doctor', '--database', ':memory:'], {}],
      [['backup', 'copy.sqlite', '--database', ':memory:'], {}],
      [['restore', 'copy.sqlite', '--database', ':memory:', '--yes'], {}],
      [['apikey', 'export', '--database', ':memory:'], {}],
    ] as const) {
      const { code, stderr } = await runCliHere(args, { env });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /is ":memory:": a store in memory would be lost when the command ends/);
    }
    assert.equal(existsSync(':memory:'), false);
  });
});
