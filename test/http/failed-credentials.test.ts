import assert from 'node:assert/strict';
import { Hono } from 'hono';
import { bearerAuth } from '../../src/http/bearer-auth.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { failedCredentialsBy } from '../../src/http/bearer-options.ts';
import { AttemptCounter } from '../../src/limits/limiter.ts';
import { startTestService, type TestService } from '../support/server.ts';

describe('keys that are not valid', () => {
  let test: TestService;
  let valid: string;
  beforeEach(async () => {
    test = await startTestService({ app: { failedCredentials: '20/d' } });
    valid = (await test.keys.create({ name: 'Valid', roles: ['GUEST'] }, OPERATOR)).key;
  });
  afterEach(() => test.stop());
  const send = (secret: string, address: string) =>
    fetch(`${test.url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'X-Forwarded-For': address,
        ...(secret && { authorization: `Bearer ${secret}` }),
      },
      body: '{"query":"{ online }"}',
    });
  const statuses = async (secret: string, address: string, requests: number) => {
    const found: number[] = [];
    for (let index = 0; index < requests; index += 1) found.push((await send(secret, address)).status);
    return found;
  };

  it('are refused as such so many times from one address, and then put off, but valid ones never', async () => {
    assert.deepEqual(await statuses('wrong', '192.0.2.1', 20), Array(20).fill(401));
    const reply = await send('wrong', '192.0.2.1');
    assert.deepEqual([reply.status, reply.headers.get('Retry-After')], [429, '4320']);
    assert.deepEqual(await reply.json(), {
      errors: [
        {
          message: 'Too many requests with invalid API keys from your address. Try again in 4320 seconds.',
          extensions: { code: 'RATE_LIMITED' },
        },
      ],
    });
    assert.deepEqual(await statuses(valid, '192.0.2.1', 3), [200, 200, 200]);
    assert.deepEqual(await statuses('', '192.0.2.1', 1), [401], 'one without a key is told that it needs one');
    assert.deepEqual(await statuses('wrong', '192.0.2.2', 1), [401]);
  });

  it('are counted for each /64 of IPv6', async () => {
    await statuses('wrong', '2001:db8:0:1::1', 20);
    assert.deepEqual(await statuses('wrong', '2001:db8:0:1:ffff::2', 1), [429]);
    assert.deepEqual(await statuses('wrong', '2001:db8:0:2::1', 1), [401]);
  });

  it('are counted together, wherever they were sent', async () => {
    await statuses('wrong', '192.0.2.1', 19);
    const introspect = () =>
      fetch(`${test.url}/introspect`, {
        method: 'POST',
        headers: { authorization: 'Bearer wrong', 'X-Forwarded-For': '192.0.2.1' },
      });
    assert.deepEqual([(await introspect()).status, (await introspect()).status], [401, 429]);
  });
});

describe('the limit of keys that are not valid', () => {
  const bySource = (limit?: string | false) => {
    const failed = failedCredentialsBy(limit);
    return (source: string) => failed?.add({ source });
  };

  it('is twenty a minute', () => {
    const failed = bySource();
    for (let index = 0; index < 20; index += 1) assert.equal(failed('a'), undefined);
    const wait = failed('a');
    assert.ok(wait !== undefined && wait > 2_000_000 && wait <= 3_000_000, `${wait}`);
  });

  it('can be changed, or turned off', () => {
    const one = bySource('1/h');
    assert.deepEqual([one('a'), typeof one('a')], [undefined, 'number']);
    const none = bySource(false);
    for (let index = 0; index < 100; index += 1) assert.equal(none('a'), undefined);
    assert.throws(() => AttemptCounter.of('many'), { name: 'RangeError', message: /"many" is not a limit/ });
  });

  it('goes on when an app is replaced by one with the same', () => {
    const failed = AttemptCounter.of('1/h');
    assert.equal(failed?.add({ source: 'a' }), undefined);
    assert.ok(AttemptCounter.of('1/h', failed)?.add({ source: 'a' }));
    assert.equal(AttemptCounter.of('2/h', failed)?.add({ source: 'a' }), undefined);
  });

  it('uses a monotonic clock, and says how long it takes', () => {
    const time = { now: 0 };
    const failed = new AttemptCounter('2/m', () => time.now);
    const add = () => failed.add({ source: 'a' });
    assert.deepEqual([add(), add(), add()], [undefined, undefined, 30_000_000]);
    time.now += 30_000;
    assert.deepEqual([add(), add()], [undefined, 30_000_000]);
  });

  it('takes a bounded amount of memory: beyond it, new ones without an address share one limit', () => {
    const time = { now: 0 };
    const failed = new AttemptCounter('2/m', () => time.now);
    const add = (source: string) => failed.add({ source });
    for (let index = 0; index < 10_000; index += 1) assert.equal(add(`${index}`), undefined);
    assert.deepEqual(
      ['x', 'y', 'z'].map((source) => add(source) === undefined),
      [true, true, false],
    );
    assert.equal(add('1'), undefined, 'a known one has its own');
    assert.equal(failed.size, 10_001);
    time.now += 60_000;
    assert.equal(add('z'), undefined, 'those that failed long ago are forgotten');
    assert.equal(failed.size, 1);
  });

  it('does not apply to clients without a known address', async () => {
    const test = await startTestService();
    const app = new Hono().use(bearerAuth({ keys: test.keys })).get('/', (c) => c.text('in'));
    for (let index = 0; index < 30; index += 1)
      assert.equal((await app.request('/', { headers: { authorization: 'Bearer wrong' } })).status, 401);
    await test.stop();
  });
});
