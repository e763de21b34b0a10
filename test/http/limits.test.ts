import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly } from '../support/direct.ts';
import { createPrincipal } from '../support/keys.ts';
import { collectingLog, withoutRequestId } from '../support/log.ts';
import { type GraphQLReply, query, startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const ME = '{ me { name } }';
const fieldsOf = ({ headers }: Pick<GraphQLReply, 'headers'>) =>
  ['RateLimit-Policy', 'RateLimit', 'Retry-After'].map((name) => headers.get(name));

describeOnEach('limits of requests', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());
  let count = 0;
  const create = async (fields: object) => {
    count += 1;
    return test.keys.create({ name: `Key ${count}`, roles: ['GUEST'], ...fields }, OPERATOR);
  };
  const ask = (secret: string, url = test.url) => query(url, secret, ME);
  const statuses = async (secret: string, requests: number) => {
    const found: number[] = [];
    for (let index = 0; index < requests; index += 1) found.push((await ask(secret)).status);
    return found;
  };

  it('accept so many at once, then one each part of the time, and tell where a request stands', async () => {
    const { key: secret } = await create({ limits: ['3/m'] });
    for (const remaining of [2, 1, 0]) {
      const reply = await ask(secret);
      assert.equal(reply.status, 200);
      assert.deepEqual(fieldsOf(reply), ['"minute";q=3;w=60', `"minute";r=${remaining};t=20`, null]);
    }
    const refused = await ask(secret);
    assert.equal(refused.status, 429);
    assert.deepEqual(fieldsOf(refused), ['"minute";q=3;w=60', '"minute";r=0;t=20', '20']);
    assert.deepEqual(refused.body, {
      errors: [
        {
          message: 'The limit of 3/m is used up. Try again in 20 seconds.',
          extensions: { code: 'RATE_LIMITED' },
        },
      ],
    });
    test.time.now += 19_000;
    assert.equal((await ask(secret)).headers.get('Retry-After'), '1');
    test.time.now += 1000;
    assert.deepEqual(await statuses(secret, 2), [200, 429]);
    test.time.now += 60_000;
    assert.deepEqual(await statuses(secret, 4), [200, 200, 200, 429]);
  });

  it('are missing in answers without limits', async () => {
    const reply = await ask((await create({})).key);
    assert.deepEqual([reply.status, ...fieldsOf(reply)], [200, null, null, null]);
  });

  it('hold all at once, and a request that one of them refuses does not count against the others', async () => {
    const { key: secret } = await create({ limits: ['2/m', '3/h'] });
    assert.deepEqual(await statuses(secret, 3), [200, 200, 429]);
    test.time.now += 60_000;
    const third = await ask(secret);
    assert.deepEqual(fieldsOf(third), [
      '"minute";q=2;w=60, "hour";q=3;w=3600',
      '"minute";r=1;t=30, "hour";r=0;t=1140',
      null,
    ]);
    const refused = await ask(secret);
    assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [429, '1140']);
    assert.match(refused.headers.get('RateLimit') ?? '', /^"minute";r=1;/);
  });

  it('of a key count the requests of its child keys, and the closest of each unit is answered', async () => {
    const parent = { name: 'Parent', roles: ['ADMIN'], limits: ['4/m'] };
    const { principal, secret } = await createPrincipal(test.keys, parent);
    const children = await Promise.all(
      ['One', 'Two'].map((name) => createPrincipal(test.keys, { name, roles: ['GUEST'], limits: ['3/m'] }, principal)),
    );
    const [one, two] = children.map((child) => child.secret);
    assert.deepEqual(fieldsOf(await ask(one!)).slice(0, 2), ['"minute";q=3;w=60', '"minute";r=2;t=20']);
    assert.deepEqual(fieldsOf(await ask(two!)).slice(0, 2), ['"minute";q=3;w=60', '"minute";r=2;t=20']);
    assert.deepEqual(fieldsOf(await ask(two!)).slice(0, 2), ['"minute";q=3;w=60', '"minute";r=1;t=20']);
    assert.equal((await ask(secret)).status, 200);
    assert.deepEqual(fieldsOf(await ask(one!)), ['"minute";q=4;w=60', '"minute";r=0;t=15', '15']);
    assert.equal((await ask(secret)).status, 429);
  });

  it('of a key that another secret of it was used for are the same', async () => {
    const { key: secret, apiKey: key } = await create({ limits: ['3/m'] });
    assert.deepEqual(await statuses(secret, 2), [200, 200]);
    const rotated = await test.keys.rotate(key.id, {}, OPERATOR);
    assert.deepEqual(await statuses(rotated.key, 2), [200, 429]);
    assert.deepEqual(await statuses(secret, 1), [429]);
  });

  it('that are changed hold from the next request on, and keep the use', async () => {
    const { key: secret, apiKey: key } = await create({ limits: ['4/m'] });
    assert.deepEqual(await statuses(secret, 3), [200, 200, 200]);
    await test.keys.update(key.id, { limits: ['3/m'] }, OPERATOR);
    await until(async () => (await ask(secret)).status === 429);
    await test.keys.update(key.id, { limits: [] }, OPERATOR);
    await until(async () => (await ask(secret)).status === 200);
    await test.keys.update(key.id, { limits: ['3/m'] }, OPERATOR);
    await until(async () => (await ask(secret)).status === 429);
  });

  it('are those of the store for all servers', async () => {
    const other = await startTestService({ database: test.database });
    try {
      other.time.now = test.time.now;
      const { key: secret } = await create({ limits: ['5/m'] });
      const found: number[] = [];
      for (let index = 0; index < 8; index += 1)
        found.push((await ask(secret, index % 2 === 0 ? test.url : other.url)).status);
      assert.deepEqual(found, [200, 200, 200, 200, 200, 429, 429, 429]);
    } finally {
      await other.stop();
    }
  });

  it('hold simultaneous requests like successive ones', async () => {
    const { key: secret } = await create({ limits: ['40/m'] });
    const replies = await Promise.all(Array.from({ length: 60 }, () => ask(secret)));
    assert.equal(replies.filter(({ status }) => status === 200).length, 40);
    assert.equal(replies.filter(({ status }) => status === 429).length, 20);
  });

  it('refuse all requests while the store cannot record them, except those with a lease', async () => {
    const { key: secret } = await create({ limits: ['1000/h'] });
    assert.deepEqual(await statuses(secret, 4), [200, 200, 200, 200]);
    const unlimited = await create({});
    await changeDirectly(test.database, 'alter table limit_states rename to elsewhere');
    try {
      const found = await statuses(secret, 3);
      assert.deepEqual(found, [200, 200, 503], 'of its lease two were left');
      assert.deepEqual(await statuses(unlimited.key, 1), [200]);
    } finally {
      await changeDirectly(test.database, 'alter table elsewhere rename to limit_states');
    }
    assert.deepEqual(await statuses(secret, 1), [200]);
  });

  it('of a key that was deleted meanwhile refuse it like any other that is not valid', async () => {
    const { key: secret, apiKey: key } = await create({ limits: ['5/m'] });
    assert.deepEqual(await statuses(secret, 1), [200]);
    // The state of a request that started before the deletion.
    const restrictions = {
      limitsId: 'x',
      limits: [{ keyId: key.id, limit: '5/m' as const }],
      networks: [],
      audiences: [],
    };
    await test.keys.delete([key.id], OPERATOR);
    assert.equal(await test.keys.limiter.enter(restrictions), 'gone');
  });
});

describeOnEach('limits of keys without any of their own', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService({ defaultLimits: ['2/m'] });
  });
  after(() => test.stop());

  it('are the defaults of the service', async () => {
    const { key: secret } = await test.keys.create({ name: 'Plain', roles: ['GUEST'] }, OPERATOR);
    const own = await test.keys.create({ name: 'Own', roles: ['GUEST'], limits: ['3/m'] }, OPERATOR);
    const statuses = async (by: string) => {
      const found: number[] = [];
      for (let index = 0; index < 4; index += 1) found.push((await query(test.url, by, ME)).status);
      return found;
    };
    assert.deepEqual(await statuses(secret), [200, 200, 429, 429]);
    assert.deepEqual(await statuses(own.key), [200, 200, 200, 429]);
  });
});

describe('a request over a limit', () => {
  it('counts as no use, and is in both logs', async () => {
    const { log, lines } = collectingLog();
    const test = await startTestService({ log });
    const { key: secret, apiKey: key } = await test.keys.create(
      { name: 'Key', roles: ['GUEST'], limits: ['1/h'] },
      OPERATOR,
    );
    for (const status of [200, 429, 429]) assert.equal((await query(test.url, secret, ME)).status, status);
    await test.keys.finishActivity();
    assert.equal((await test.keys.useOf([key.id])).get(key.id)?.uses, 1);
    const prefix = `svc_${key.publicId}_…`;
    assert.deepEqual(
      lines.map(({ level, fields, message }) => [level, withoutRequestId(fields), message]),
      [['info', { reason: 'limited', prefix, address: '127.0.0.1' }, 'request limited']],
    );
    const [entry] = await test.keys.audit.read({ actor: key.id }, OPERATOR);
    assert.deepEqual(
      [entry?.action, entry?.actor.kind, entry?.address, entry?.after],
      ['REFUSE', 'KEY', '127.0.0.1', { reason: 'limited', count: 1 }],
    );
    await test.stop();
  });
});
