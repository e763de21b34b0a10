import assert from 'node:assert/strict';
import { digestToken, SESSIONS } from '../../../src/features/sessions/session.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { until } from '../../support/until.ts';
import { Sessions } from '../../../src/features/sessions/sessions.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describeOnEach('a session', () => {
  let test: TestKeys;
  let keyId: string;
  beforeEach(async () => {
    test = await openTestKeys();
    const { principal } = await createPrincipal(test.keys, { name: 'Ada', roles: ['VIEWER'] });
    keyId = principal.apiKey.id;
  });
  afterEach(() => test.store.close());

  const begin = () => test.keys.feature(Sessions).begin(keyId, 'digest');
  const find = (token: string) => test.keys.feature(Sessions).find(token);
  const lastUse = async (token: string) =>
    (await test.options.repository.port(SESSIONS).find(digestToken(token)))?.usedAt ?? 0;

  it('is found by its token, with the digest of the secret', async () => {
    const token = await begin();
    assert.match(token, /^[\w-]{43}$/);
    const { now } = test.time;
    const expected = { secretDigest: 'digest', keyId, startedAt: now, usedAt: now, entry: null };
    assert.deepEqual(await find(token), { tokenDigest: digestToken(token), ...expected });
    assert.notEqual(await begin(), token);
  });

  for (const token of ['', 'x', 'A'.repeat(43), 'A'.repeat(44), `${'A'.repeat(42)}'`, '\0'.repeat(43)])
    it(`is not found by ${JSON.stringify(token.slice(0, 5))} with ${token.length} characters`, async () => {
      await begin();
      assert.equal(await find(token), undefined);
      await test.keys.feature(Sessions).end(token);
    });

  it('ends after half an hour without a use', async () => {
    const token = await begin();
    test.time.now += 30 * MINUTE - 1;
    const before = test.time.now;
    assert.ok(await find(token));
    await until(async () => (await lastUse(token)) === before);
    test.time.now += 30 * MINUTE - 1;
    assert.ok(await find(token));
    await until(async () => (await lastUse(token)) > before);
    test.time.now += 30 * MINUTE;
    assert.equal(await find(token), undefined);
  });

  it('ends after eight hours, however much it is used', async () => {
    const token = await begin();
    const end = test.time.now + 8 * HOUR;
    while (test.time.now < end - 20 * MINUTE) {
      test.time.now += 20 * MINUTE;
      const { now } = test.time;
      assert.ok(await find(token));
      await until(async () => (await lastUse(token)) === now);
    }
    test.time.now = end - 1;
    assert.ok(await find(token));
    test.time.now = end;
    assert.equal(await find(token), undefined);
  });

  it('is looked at without a use', async () => {
    const token = await begin();
    const start = test.time.now;
    test.time.now += 29 * MINUTE;
    assert.ok(await test.keys.feature(Sessions).look(token));
    // Starts after earlier writes are done.
    await begin();
    assert.equal(await lastUse(token), start);
  });

  it('is ended', async () => {
    const [token, other] = [await begin(), await begin()];
    await test.keys.feature(Sessions).end(token);
    assert.equal(await find(token), undefined);
    assert.ok(await find(other));
  });

  it('ends where its key has more than a hundred', async () => {
    const tokens: string[] = [];
    for (let count = 0; count < 101; count += 1) {
      tokens.push(await begin());
      test.time.now += 1;
    }
    const found = await Promise.all(tokens.map(find));
    assert.deepEqual(
      found.map((session) => session !== undefined),
      tokens.map((_, index) => index > 0),
    );
  });

  it('is forgotten once it has ended, when another begins', async () => {
    const token = await begin();
    test.time.now += 8 * HOUR;
    await begin();
    assert.equal(await test.options.repository.port(SESSIONS).find(digestToken(token)), undefined);
  });
});
