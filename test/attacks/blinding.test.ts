import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Hono } from 'hono';
import { OPERATOR, requirePermission } from '../../src/keys/authorization/principal.ts';
import type { KeyRepository } from '../../src/keys/repository.ts';
import { bearerAuth } from '../../src/http/bearer-auth.ts';
import { listen } from '../../src/http/server.ts';
import { createSecret } from '../../src/keys/secret/secret.ts';
import { describeOnEach } from '../support/dialects.ts';
import { readDirectly } from '../support/direct.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { startServer } from '../support/server.ts';
import { tempStore } from '../support/temp.ts';

const DAY_MINUTES = 24 * 60;
const MB = 1_000_000;

describeOnEach('an attacker who wants to act unseen', (dialect) => {
  let test: TestKeys;
  let database: string;
  beforeEach(async () => {
    database = tempStore();
    test = await openTestKeys({ database });
  });
  afterEach(() => test.store.close());

  const forge = async (count: number) => {
    for (let request = 0; request < count; request += 1)
      await test.keys.authenticate(createSecret(randomBytes).text, '192.0.2.1');
  };
  const refusals = async () => {
    await test.keys.finishActivity();
    return (await test.keys.auditLog({ action: 'refuse', first: 500 }, OPERATOR)).toReversed();
  };

  it('sends forged keys before a revoked one: the revoked one is in the log', async () => {
    const { secret, key } = await test.keys.create({ name: 'Revoked', roles: ['ADMIN'] }, OPERATOR);
    await test.keys.setEnabled(key.id, false, OPERATOR);
    await forge(200);
    await test.keys.authenticate(secret, '198.51.100.7');
    const known = (await refusals()).filter((entry) => entry.key?.name === 'Revoked');
    assert.deepEqual(
      known.map(({ after, address }) => [after, address]),
      [[{ reason: 'disabled', count: 1 }, '198.51.100.7']],
    );
  });

  it('sends forged keys before it tries what its key may not: the attempt is in the log', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    await forge(200);
    assert.throws(() => requirePermission(principal, 'DISK', 'READ_ANY'));
    assert.ok((await refusals()).some(({ actor }) => actor.name === 'Guest'));
  });

  it('is refused in ever new ways with one key: attempts with another are in the log', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Noisy', roles: ['GUEST'] });
    const { principal: quiet } = await createPrincipal(test.keys, { name: 'Quiet', roles: ['GUEST'] });
    for (const resource of test.keys.catalog.resources)
      assert.throws(() => requirePermission(principal, resource, 'DELETE_ANY'));
    assert.throws(() => requirePermission(quiet, 'DISK', 'READ_ANY'));
    const found = await refusals();
    assert.ok(found.some(({ actor }) => actor.name === 'Quiet'));
    assert.deepEqual(
      found.filter(({ actor }) => actor.name === 'Noisy').map(({ after }) => after!['count']),
      [1, 1, 1, 1, 1, test.keys.catalog.resources.length - 5],
    );
  });

  it('sends forged keys for a whole day: they add less than 1 MB to the store', async () => {
    const scheduled: (() => void)[] = [];
    let written: Promise<unknown> = Promise.resolve();
    const observed = (repository: KeyRepository): KeyRepository => ({
      ...repository,
      write(work) {
        const done = repository.write(work);
        written = done;
        return done;
      },
    });
    const other = await openTestKeys({
      database,
      schedule: (work) => void scheduled.push(work),
      repository: observed,
    });
    const before = await sizeOf(database);
    for (let minute = 0; minute < DAY_MINUTES; minute += 1) {
      for (let request = 0; request < 8; request += 1)
        await other.keys.authenticate(
          createSecret(randomBytes).text,
          `2001:db8:ffff:ffff:ffff:ffff:ffff:${1000 + minute}`,
        );
      for (const work of scheduled.splice(0)) work();
      await written;
      other.time.now += 60_000;
    }
    const grown = (await sizeOf(database)) - before;
    assert.ok(grown > 0.1 * MB && grown < MB, `${grown} bytes`);
    await other.store.close();
  });

  it('writes another address into the headers: the log of the server and the audit log have its own', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    const { log, lines } = collectingLog();
    const server = await startServer(test.keys, { log });
    for (const token of ['nonsense', secret])
      await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'x-forwarded-for': '203.0.113.1',
          forwarded: 'for=203.0.113.1',
        },
        body: JSON.stringify({ query: '{ info { name } }' }),
      });
    await server.stop();
    assert.deepEqual(
      lines.map(({ level, fields, message }) => [level, message, fields]),
      [
        ['info', 'key refused', { reason: 'malformed', prefix: undefined, address: '127.0.0.1' }],
        [
          'info',
          'request forbidden',
          { reason: 'forbidden', prefix: secret.slice(4, 16), missing: ['INFO:READ_ANY'], address: '127.0.0.1' },
        ],
      ],
    );
    assert.deepEqual(
      (await refusals()).map(({ after, address }) => [after!['reason'], address]),
      [
        ['malformed', '127.0.0.1'],
        ['forbidden', '127.0.0.1'],
      ],
    );
    assert.ok(!('broken' in (await test.keys.verifyAuditLog())), 'the hash covers the address');
  });

  it('tries what its key may not in an app of its own: bearerAuth records refusals and uses as GraphQL does', async () => {
    const { log, lines } = collectingLog();
    const app = new Hono()
      .use(bearerAuth({ keys: test.keys, permission: 'DOCKER:READ_ANY', log }))
      .get('/', (c) => c.text('in'));
    const server = await listen({ app, host: '127.0.0.1', port: 0 });
    const { secret, principal } = await createPrincipal(test.keys, { name: 'May', roles: ['VIEWER'] });
    const { secret: other } = await createPrincipal(test.keys, { name: 'May not', roles: ['GUEST'] });
    for (const token of [secret, other]) await fetch(server.url, { headers: { authorization: `Bearer ${token}` } });
    await server.stop();
    assert.deepEqual(
      (await refusals()).map(({ actor, after, address }) => [actor.name, after, address]),
      [['May not', { reason: 'forbidden', count: 1, missing: ['DOCKER:READ_ANY'] }, '127.0.0.1']],
    );
    assert.deepEqual([...(await test.keys.usedPermissionsOf(principal.key.id)).keys()], ['DOCKER:READ_ANY']);
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['request forbidden'],
    );
  });

  async function sizeOf(store: string): Promise<number> {
    const query =
      dialect === 'sqlite'
        ? 'select page_count * page_size as bytes from pragma_page_count, pragma_page_size'
        : "select pg_total_relation_size('audit_log') as bytes";
    return Number((await readDirectly(store, query))[0]!['bytes']);
  }
});
