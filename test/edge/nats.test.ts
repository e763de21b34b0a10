import assert from 'node:assert/strict';
import { type EdgeStore, openEdgeStore } from '../../src/edge/index.ts';
import { requestCheck } from '../../src/http/request-check.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { NatsFeed } from '../../src/nats/nats-feed.ts';
import { NatsPublisher } from '../../src/nats/publisher.ts';
import { openKeysOver, type OpenKeys } from '../../src/service/open-keys.ts';
import { describeOnEach } from '../support/dialects.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { type NatsServer, startNats, stopNats } from '../support/nats.ts';

const LEASE_MS = 1000;

describeOnEach('a feed by NATS', () => {
  let test: TestKeys;
  let nats: NatsServer;
  let publisher: NatsPublisher;
  let token: string;
  const edges: { store: EdgeStore; keys: OpenKeys }[] = [];
  const { log, lines } = collectingLog();

  const settings = () => ({ servers: [nats.url], credentials: undefined, name: 'test' });
  const publish = ({ keys }: TestKeys = test) =>
    new NatsPublisher({ settings: settings(), keys: () => Object.assign(keys, { check: requestCheck(keys) }), log });
  const follow = async (options: { token?: string; leaseMs?: number } = {}) => {
    const feed = new NatsFeed({ settings: settings(), token, leaseMs: LEASE_MS, ...options });
    const store = await openEdgeStore(feed, { log });
    const edge = { store, keys: await openKeysOver(store, createCatalog({})) };
    edges.push(edge);
    return edge;
  };
  /** What an edge says of a secret. */
  const check = async ({ keys }: { keys: OpenKeys }, secret: string) => {
    const checked = await keys.check({ secret });
    return checked.ok ? 'ok' : `${checked.status} ${checked.code}`;
  };
  const create = async (name: string, more: object = {}) =>
    test.keys.create({ name, roles: ['VIEWER'], ...more }, OPERATOR);

  beforeEach(async () => {
    lines.length = 0;
    nats = await startNats();
    test = await openTestKeys();
    test.time.now = Date.now();
    ({ key: token } = await create('Edge', { roles: [], permissions: ['EDGE:READ_ANY'] }));
    publisher = publish();
  });

  afterEach(async () => {
    for (const { keys } of edges.splice(0)) await keys.close();
    await publisher.stop();
    await test.keys.edges.close();
    await test.store.close();
    await stopNats();
  });

  it('has the keys of its origin on each edge, and a change returns once all of them know it', async () => {
    const { apiKey: before, key: old } = await create('Before');
    const [one, other] = [await follow(), await follow()];
    assert.equal(one.store.state().keys, 2);
    const { apiKey, key } = await create('New');
    assert.deepEqual([await check(one, key), await check(other, key)], ['ok', 'ok']);
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    assert.deepEqual([await check(one, key), await check(other, key)], ['401 UNAUTHENTICATED', '401 UNAUTHENTICATED']);
    await test.keys.delete([before.id], OPERATOR);
    assert.deepEqual([await check(one, old), await check(other, old)], ['401 UNAUTHENTICATED', '401 UNAUTHENTICATED']);
    assert.equal(other.store.state().keys, 2);
  });
});
