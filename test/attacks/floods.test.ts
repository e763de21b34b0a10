import assert from 'node:assert/strict';
import type { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import type { BearerEnv } from '../../src/http/bearer-auth.ts';
import { sourceOf } from '../../src/keys/basics/source.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { AttemptCounter } from '../../src/limits/limiter.ts';
import { NO_LOG } from '../../src/log.ts';
import { APP, authorizeUrl } from '../features/consent/support/consent.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';

/** More addresses than the limiter distinguishes. */
const FLOOD = 20_000;
/** Addresses in separate /48 networks of one /32. */
const flooding = (index: number) => `2001:db8:${index.toString(16)}::1`;
/** The header of a form from our own pages. */
const OWN = { 'sec-fetch-site': 'same-origin' };
/** An address in a separate /32. */
const STRANGER = '2001:dead::1';
const UNKNOWN_KEY = 'svc_q3aSmTb4xY2P_0QdPVnBzqVbTO0SjJXwqkKRMJ3zqBnb7B1jgXgTyJyL3tDEd0';

describe('a wide network that floods', () => {
  let keys: TestKeys;
  let app: Hono<BearerEnv>;
  let valid: string;

  before(async () => {
    keys = await openTestKeys({ asServer: true, consent: 'both' });
    const limits = { failedCredentials: '20/d' };
    app = await createApp({ keys: keys.keys, log: NO_LOG, clients: [APP], console: true, ...limits });
    valid = (await keys.keys.create({ name: 'Valid', roles: ['GUEST'] }, OPERATOR)).key;
  });
  after(() => keys.store.close());

  /** Sends a request through a local proxy that reports the client's address. */
  const send = async (address: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const init = {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'x-forwarded-for': address,
        'content-type': body?.startsWith('{') ? 'application/json' : 'application/x-www-form-urlencoded',
        ...headers,
      },
      ...(body !== undefined && { body }),
    };
    const env = { incoming: { socket: { remoteAddress: '127.0.0.1' } } };
    return (await app.request(`http://127.0.0.1${path}`, init, env)).status;
  };
  const graphql = (address: string, key: string) =>
    send(address, '/graphql', '{"query":"{ online }"}', { authorization: `Bearer ${key}` });
  const signIn = (address: string, key: string) => send(address, '/console/sign-in', `key=${key}`, OWN);
  const form = `client_id=${APP.id}`;
  const asked = authorizeUrl('').slice(1);

  const doors: readonly [door: string, send: (address: string) => Promise<number>, served: number][] = [
    ['a code to show', (from) => send(from, '/oauth/device_authorization', `${form}&scope=DOCKER:READ_ANY`), 200],
    ['a page to agree on', (from) => send(from, `/${asked}`), 200],
    ['a code that is typed', (from) => send(from, '/device?user_code=BBBB-BBBB'), 404],
    ['a decision on a code', (from) => send(from, '/device', 'user_code=BBBB-BBBB&decision=deny', OWN), 404],
    ['a decision on a page', (from) => send(from, '/oauth/authorize', 'page=x&decision=deny', OWN), 404],
    ['a code for a key', (from) => send(from, '/oauth/token', form), 400],
    ['a key to be ended', (from) => send(from, '/oauth/revoke', `${form}&token=x`), 200],
    ['a wrong bearer token', (from) => graphql(from, UNKNOWN_KEY), 401],
    ['a wrong key on the console', (from) => signIn(from, UNKNOWN_KEY), 403],
  ];
  for (const [door, knock, served] of doors) {
    it(`with ${door} from ${FLOOD} addresses, is refused as itself, and a stranger is served`, async () => {
      const statuses = new Map<number, number>();
      for (let index = 0; index < FLOOD; index += 1) {
        const status = await knock(flooding(index));
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
      assert.ok(statuses.get(429)! > FLOOD - 2000, JSON.stringify([...statuses]));
      assert.equal(await knock(STRANGER), served);
      assert.equal(await graphql(flooding(1), valid), 200, 'a valid key is accepted from there, too');
      assert.equal(await signIn(flooding(1), valid), 303);
      keys.time.now += 3_600_000;
    });
  }
});

describe('a count by source', () => {
  const time = { now: 0 };
  let counter: AttemptCounter;
  beforeEach(() => (counter = new AttemptCounter('20/m', () => time.now)));
  const add = (address: string) => counter.add(sourceOf(address)) === undefined;

  it('of one wide network, takes the room of its limit alone', () => {
    for (let index = 0; index < FLOOD; index += 1) add(flooding(index));
    assert.equal(counter.size, 1000 + 1000 + 1);
    assert.equal(add(STRANGER), true);
  });

  it('of IPv4, is so by /24 and /16', () => {
    const found = Array.from({ length: FLOOD }, (_, index) => add(`198.51.${index >> 8}.${index & 255}`));
    assert.equal(found.filter(Boolean).length, 1000, 'of a /16');
    const network = Array.from({ length: 256 }, (_, index) => add(`203.0.113.${index}`));
    assert.equal(network.filter(Boolean).length, 60, 'of a /24');
    assert.equal(add('203.0.114.1'), true);
  });

  it('where there is no more room, is so by its wide network, and strangers share nothing', () => {
    for (let index = 0; index < FLOOD; index += 1) add(`2a0${index % 10}:${(index % 50).toString(16)}:${index}::1`);
    const { size } = counter;
    assert.ok(size > 20_000 && size <= 30_000, `${size}`);
    const stranger = Array.from({ length: 1001 }, () => add(STRANGER));
    assert.deepEqual([stranger.filter(Boolean).length, stranger.at(-1)], [1000, false], 'all of its wide network');
    assert.equal(add('2001:beef::1'), true);
    assert.equal(counter.size, size + 2);
  });

  it('takes a bounded amount of memory from any number of wide networks: the rest share one limit', () => {
    for (let index = 0; index < 50_000; index += 1) add(`2a${index % 100}:${index.toString(16)}::1`);
    assert.ok(counter.size <= 30_001, `${counter.size}`);
    time.now += 60_000;
    assert.equal(add(STRANGER), true);
    assert.ok(counter.size <= 6, 'what is unused is forgotten');
  });
});
