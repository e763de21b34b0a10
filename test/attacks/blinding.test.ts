import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import { chainHash } from '../../src/keys/audit/chain.ts';
import { USED_GRANTS } from '../../src/features/usage/suggest.ts';
import { OPERATOR, type Principal, requirePermission } from '../../src/keys/authorization/principal.ts';
import type { KeyRepository } from '../../src/keys/repository/repository.ts';
import { bearerAuth } from '../../src/http/bearer-auth.ts';
import { listen } from '../../src/http/listen.ts';
import { createSecret } from '../../src/keys/secret/secret.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly, readDirectly, unlockAuditLog } from '../support/direct.ts';
import { authenticate, createPrincipal, idOf, openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog, withoutRequestId } from '../support/log.ts';
import { startServer } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

/** How many minutes of forged keys are sent. A day is counted from them. */
const MINUTES = 4 * 60;
const DAY_PART = MINUTES / (24 * 60);
const MB = 1_000_000;

describeOnEach('an attacker who wants to act unseen', (dialect) => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const forge = async (count: number) => {
    for (let request = 0; request < count; request += 1)
      await authenticate(test.keys, createSecret(randomBytes).text, '192.0.2.1');
  };
  const refusals = async () => {
    await test.keys.finishActivity();
    return (await test.keys.audit.read({ action: 'refuse', first: 500 }, OPERATOR)).toReversed();
  };

  it('sends forged keys before a revoked one: the revoked one is in the log', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'Revoked', roles: ['ADMIN'] }, OPERATOR);
    await test.keys.setEnabled(key.id, false, OPERATOR);
    await forge(200);
    await authenticate(test.keys, secret, '198.51.100.7');
    const known = (await refusals()).filter((entry) => entry.apiKey?.name === 'Revoked');
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

  it('is refused by a rule, and each attempt is in the log, whatever the rule', async () => {
    const grants = { permissions: ['API_KEY:CREATE_ANY', 'API_KEY:READ_ANY'], expiresIn: '1h' };
    const attempts: Record<string, (by: Principal, id: string) => Promise<unknown>> = {
      'a permission that it lacks': (by) => test.keys.create({ name: 'New', permissions: ['DISK:READ_ANY'] }, by),
      'a role that it does not hold': (by) => test.keys.create({ name: 'New', roles: ['GUEST'] }, by),
      'a later end': (by) => test.keys.create({ name: 'New', permissions: ['API_KEY:READ_ANY'], expiresIn: '2h' }, by),
      'an adoption': (by, id) => test.keys.adopt(id, by),
      'an end of life': async (by, id) => {
        await test.keys.setEnabled(id, false, OPERATOR);
        await test.keys.create({ name: 'New', permissions: ['API_KEY:READ_ANY'] }, by);
      },
      'a previous secret': async (by, id) => {
        await test.keys.rotate(id, {}, OPERATOR);
        await test.keys.create({ name: 'New', permissions: ['API_KEY:READ_ANY'] }, by);
      },
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      const { principal } = await createPrincipal(test.keys, { name, ...grants });
      await assert.rejects(attempt(principal, principal.apiKey.id), { code: 'FORBIDDEN' });
    }
    const recorded = (await refusals()).map(({ actor, after }) => [actor.name, after?.['reason']]);
    assert.deepEqual(
      recorded,
      Object.keys(attempts).map((name) => [name, 'forbidden']),
    );
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

  it('sends forged keys for hours: they add less than 1 MB a day to the store', async () => {
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
      database: test.database,
      schedule: (work) => void scheduled.push(work),
      repository: observed,
    });
    const before = await sizeOf(test.database);
    for (let minute = 0; minute < MINUTES; minute += 1) {
      for (let request = 0; request < 8; request += 1)
        await authenticate(
          other.keys,
          createSecret(randomBytes).text,
          `2001:db8:ffff:ffff:ffff:ffff:ffff:${1000 + minute}`,
        );
      for (const work of scheduled.splice(0)) work();
      await written;
      other.time.now += 60_000;
    }
    const grown = ((await sizeOf(test.database)) - before) / DAY_PART;
    assert.ok(grown > 0.1 * MB && grown < MB, `${grown} bytes`);
    await other.store.close();
  });

  // The proxy appended the last entry.
  const ways: [how: string, trust: string[], addresses: string[], own: string][] = [
    ['and is no proxy', ['192.0.2.0/24'], ['203.0.113.1'], '127.0.0.1'],
    ['before a trusted proxy', ['127.0.0.0/8'], ['203.0.113.1', '198.51.100.7'], '198.51.100.7'],
  ];
  for (const [how, trust, addresses, address] of ways)
    it(`writes another address into the headers, ${how}: the log of the server and the audit log have its own`, async () => {
      const { secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
      const { log, lines } = collectingLog();
      const server = await startServer(test.keys, { log, trust });
      for (const token of ['nonsense', secret])
        await fetch(`${server.url}/graphql`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            'x-forwarded-for': addresses.join(', '),
            forwarded: addresses.map((each) => `for=${each}`).join(', '),
          },
          body: JSON.stringify({ query: '{ info { name } }' }),
        });
      await server.stop();
      assert.deepEqual(
        lines.map(({ level, fields, message }) => [level, message, withoutRequestId(fields)]),
        [
          ['info', 'key refused', { reason: 'malformed', prefix: undefined, address }],
          [
            'info',
            'request forbidden',
            { reason: 'forbidden', prefix: `${secret.slice(0, 16)}_…`, missing: ['INFO:READ_ANY'], address },
          ],
        ],
      );
      assert.deepEqual(
        (await refusals()).map((entry) => [entry.after!['reason'], entry.address]),
        [
          ['malformed', address],
          ['forbidden', address],
        ],
      );
      assert.ok(!('broken' in (await test.keys.audit.check()).verification), 'the hash covers the address');
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
    assert.deepEqual(
      [...(await test.keys.port(USED_GRANTS).of([principal.apiKey.id])).get(principal.apiKey.id)!.keys()],
      ['DOCKER:READ_ANY'],
    );
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

describeOnEach('an attacker who can write to the store', () => {
  let test: TestKeys;
  let env: NodeJS.ProcessEnv;
  beforeEach(async () => {
    const path = join(tempFolder(), 'audit.key');
    writeFileSync(path, randomBytes(32), { mode: 0o600 });
    env = { SVC_API_AUDIT_KEY: path };
    test = await openTestKeys();
    await create('A');
    await create('B');
  });
  afterEach(() => test.store.close());

  const create = (name: string) => test.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  /** Signs the audit log with a key from now on. */
  const useKey = async () => {
    await test.store.close();
    test = await openTestKeys({ database: test.database, env });
  };
  const tamper = async (...statements: string[]) => {
    await unlockAuditLog(test.database);
    await changeDirectly(test.database, ...statements);
  };
  const verified = async (head?: string) => {
    const result = (await test.keys.audit.check(head)).verification;
    if ('broken' in result) return ['broken', result.broken];
    return 'unverifiable' in result ? ['unverifiable', result.unverifiable] : ['intact', result.number];
  };
  const headOf = async () => {
    const result = (await test.keys.audit.check()).verification;
    assert.ok('entries' in result);
    return `${result.number}:${result.hash}`;
  };
  /** Rewrites the whole log without a key. */
  const rechain = async () => {
    const entries = (await test.keys.audit.read({ first: 500 }, OPERATOR)).toReversed();
    let hash = '0'.repeat(64);
    const statements = entries.map((entry) => {
      hash = chainHash(entry, hash);
      return `update audit_log set hash = '${hash}' where number = ${entry.number}`;
    });
    await tamper(...statements, `update audit_head set hash = '${hash}'`);
  };

  it('cuts off the newest entries and moves the head back: a head that was kept elsewhere shows it', async () => {
    const head = await headOf();
    assert.deepEqual(await verified(head), ['intact', 2]);
    await create('C');
    assert.deepEqual(await verified(head), ['intact', 3], 'the log has grown');
    await tamper(
      'delete from audit_log where number > 1',
      'update audit_head set number = 1, hash = (select hash from audit_log where number = 1)',
    );
    assert.deepEqual(await verified(), ['intact', 1]);
    assert.deepEqual(await verified(head), ['broken', 2]);
  });

  it('changes an entry and chains all anew: a head that was kept elsewhere shows it', async () => {
    const head = await headOf();
    await tamper("update audit_log set actor_name = 'somebody' where number = 1");
    await rechain();
    assert.deepEqual(await verified(), ['intact', 2]);
    assert.deepEqual(await verified(head), ['broken', 2]);
  });

  it('prunes the entry of a kept head: it cannot be compared, and the result says so', async () => {
    const head = await headOf();
    await create('C');
    test.time.now += 2000;
    await test.keys.audit.prune('1s');
    assert.deepEqual(await verified(head), ['unverifiable', 2]);
    await tamper('delete from audit_start');
    assert.deepEqual(await verified(), ['broken', 1]);
  });

  it('cannot rewrite a log with a key without that key', async () => {
    await useKey();
    await create('C');
    assert.deepEqual(await verified(), ['intact', 3]);
    await tamper("update audit_log set actor_name = 'somebody' where number = 1");
    assert.deepEqual(await verified(), ['broken', 1]);
    await rechain();
    assert.deepEqual(await verified(), ['unverifiable', 3], 'no entry has the key any more');
  });

  it('starts a server with another key: that the newest entry was not made with it shows', async () => {
    assert.equal(await test.keys.audit.matchesKey(), true, 'there is no key yet');
    await useKey();
    assert.equal(await test.keys.audit.matchesKey(), true, 'nothing was written with it yet');
    await create('C');
    assert.equal(await test.keys.audit.matchesKey(), true);
    test.time.now += 2000;
    await test.keys.audit.prune('1s');
    assert.equal(await test.keys.audit.matchesKey(), true, 'of one entry behind the start');
    const path = join(tempFolder(), 'audit.key');
    writeFileSync(path, randomBytes(32), { mode: 0o600 });
    const other = await openTestKeys({ database: test.database, env: { SVC_API_AUDIT_KEY: path } });
    assert.equal(await other.keys.audit.matchesKey(), false);
    await other.store.close();
    const keyless = await openTestKeys({ database: test.database });
    await assert.rejects(keyless.keys.audit.matchesKey(), { code: 'STORE_AUDIT_KEY' });
    await keyless.store.close();
  });

  it('appends entries without the key: they show, and svc-api itself refuses to', async () => {
    await useKey();
    await create('C');
    const keyless = await openTestKeys({ database: test.database });
    await assert.rejects(keyless.keys.create({ name: 'D', roles: ['GUEST'] }, OPERATOR), { code: 'STORE_AUDIT_KEY' });
    assert.equal(await keyless.keys.findByName('D', OPERATOR), undefined);
    await keyless.store.close();
    const [last] = await test.keys.audit.read({ first: 1 }, OPERATOR);
    const { address: _address, ...forged } = { ...last!, number: 4 };
    const hash = chainHash(forged, last!.hash);
    await tamper(
      `insert into audit_log select 4, at, actor_kind, actor_id, actor_name, action, key_id, key_name, before, after,
        address, '${hash}' from audit_log where number = 3`,
      `update audit_head set number = 4, hash = '${hash}'`,
    );
    assert.deepEqual(await verified(), ['broken', 4]);
  });

  it('changes an entry of a log with a key: without the key, it cannot be verified, and the result says so', async () => {
    await useKey();
    await create('C');
    await test.store.close();
    test = await openTestKeys({ database: test.database });
    assert.deepEqual(await verified(), ['unverifiable', 3]);
  });

  it('gives a key more grants, or adds one: the log does not explain it', async () => {
    await changeDirectly(
      test.database,
      `update api_keys set roles = '["ADMIN"]' where name = 'A'`,
      `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at)
       select '${idOf('x')}', 'Forged', '["ADMIN"]', '[]', 'y', 'z', created_at from api_keys where name = 'A'`,
    );
    assert.deepEqual(await verified(), ['intact', 2]);
    const { differences } = (await test.keys.audit.check()).comparison!;
    assert.deepEqual(differences.map(({ name, reason }) => `${name} ${reason}`).toSorted(), [
      'A differs in roles',
      'Forged exists, although it was never created',
    ]);
  });
});
