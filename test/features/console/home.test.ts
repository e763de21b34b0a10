import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { writeUses } from '../../../src/keys/authentication/activity.ts';
import { APP, askDevice } from '../consent/support/consent.ts';
import { startConsoleService, type Visitor, visitorWith } from './support/console.ts';
import { noteLeak } from '../../support/leak.ts';
import type { TestService } from '../../support/server.ts';
import { query } from '../../support/server.ts';

const HOUR = 3_600_000;

describe('the home page of the console', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsoleService({ consent: 'both', app: { clients: [APP] } });
  });
  afterEach(() => test.stop());

  const create = async (name: string, more: object = {}) => {
    test.time.now += 1000;
    return test.keys.create({ name, permissions: ['DOCKER:READ_ANY'], ...more }, OPERATOR);
  };
  /** Finished requests of a key. */
  const count = (id: string, age: number, accepted: number, refused = 0) => {
    const at = test.time.now - age * HOUR;
    const hours = [{ start: at - (at % HOUR), accepted, forbidden: 0, limited: 0, refused }];
    const usage = { id, uses: accepted, lastUsedAt: at, previousLastUsedAt: null, permissions: [], hours };
    return test.store.repository.write((writer) => writeUses(writer, [usage], test.options.listeners), {
      counts: true,
    });
  };
  /** The figures on the page, with their links. */
  const figuresOf = ({ page }: Visitor) =>
    Array.from(
      page!.html.matchAll(/<li><(?:a href="([^"]*)"|span)><strong[^>]*>([^<]*)<\/strong> <span>([^<]*)</g),
      ([, href, value, what]) => `${value} ${what} ${href?.replaceAll('&amp;', '&') ?? '-'}`,
    );

  it('counts requests, refusals, keys, and keys that expire soon or were never used, with links to their lists', async () => {
    const { apiKey: used } = await create('Used', { expiresIn: '400d' });
    await create('Ends', { expiresIn: '10d' });
    const off = await create('Off', { expiresIn: '10d' });
    await test.keys.setEnabled(off.apiKey.id, false, OPERATOR);
    await count(used.id, 30, 1000);
    await count(used.id, 23, 5);
    await count(used.id, 0, 7, 2);
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    await visitor.open('');
    assert.deepEqual(figuresOf(visitor), [
      '14 requests, 24 h ./keys?sort=last-used',
      '2 not accepted ./audit-log?outcome=REFUSED&since=2029-12-31',
      '4 keys ./keys',
      '1 expiring soon ./keys?status=ACTIVE&ends=14d&sort=ends',
      '2 never used ./keys?status=ACTIVE&used=never',
      '0 waiting for approval ./requests',
    ]);
    assert.match(
      visitor.page!.text,
      /Newest All keys (Off now Ada now|Ada now Off now) Ends 1 second ago Used 2 seconds ago/,
    );
    assert.match(visitor.page!.text, /Expiring soon Within 14 days Ends in 10 days/);
    assert.match(visitor.page!.text, /Problems Health No problems found/);
    assert.match(visitor.page!.text, /accepted 12 .*refused 2/);
    assert.match(visitor.page!.text, /From, UTC accepted forbidden limited refused 2030-01-01 00:00 7 0 0 2/);
  });

  it('is the first page, and lists requests to approve', async () => {
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    assert.equal(visitor.page!.path, '');
    await askDevice(test.url, { scope: 'DOCKER:READ_ANY' });
    await visitor.open('');
    assert.match(visitor.page!.text, /1 waiting for approval/);
    assert.match(visitor.page!.text, /Waiting for approval Approvals Grafana sync now/);
  });

  it('shows only what the person may see', async () => {
    await create('Of others');
    const own = { name: 'Bea', permissions: ['API_KEY:READ_OWN'] };
    const { visitor, principal, secret } = await visitorWith(test, own);
    await query(test.url, secret, '{ __typename }');
    await test.keys.finishActivity();
    await count(principal.apiKey.id, 1, 3);
    await visitor.open('');
    assert.deepEqual(
      figuresOf(visitor).map((figure) => figure.replace(/^\d+ req| \S+$/g, '')),
      ['uests, 24 h', '0 not accepted', '1 key', '0 expiring soon', '0 never used'],
    );
    assert.match(visitor.page!.text, /Requests of your key/);
    assert.doesNotMatch(visitor.page!.text, /Of others|Waiting for approval|Problems|New key/);
  });

  it('names a leaked secret', async () => {
    const { apiKey } = await create('Leaky');
    await noteLeak(test, apiKey, 'a.env:1');
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    await visitor.open('');
    assert.match(visitor.page!.text, /Problems .*A scan found the secret of Leaky/);
  });

  it('is not for people who may see no keys: they start with what they may see', async () => {
    const { visitor } = await visitorWith(test, { name: 'Guest', roles: ['GUEST'] });
    assert.equal(visitor.page!.path, 'me');
    assert.doesNotMatch(visitor.page!.text, /Home/);
  });
});
