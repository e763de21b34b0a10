import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { UNIT_MS } from '../../src/keys/basics/duration.ts';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../support/keys.ts';

const YEAR = 365 * UNIT_MS.d;

describeAlwaysOnEach('a clock that was wrong for a while', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const given = (name: string) => test.keys.create({ name, roles: ['GUEST'], expiresIn: '1h' }, OPERATOR);
  const isAccepted = async (secret: string) => 'principal' in (await authenticate(test.keys, secret));

  it('leaves nothing behind: keys work again once it is right, also for others', async () => {
    const { key: secret } = await given('A');
    const right = test.time.now;
    test.time.now += YEAR;
    await given('B');
    assert.equal(await isAccepted(secret), false);
    test.time.now = right;
    assert.equal(await isAccepted(secret), true);
    const other = await openTestKeys({ database: test.database });
    other.time.now = right;
    assert.equal('principal' in (await authenticate(other.keys, secret)), true);
    await other.store.close();
  });

  it('is known to be behind the audit log by more than a minute, until there is a newer entry', async () => {
    assert.equal(await test.keys.store.clockBehindMs(), 0);
    await given('A');
    test.time.now -= UNIT_MS.m;
    assert.equal(await test.keys.store.clockBehindMs(), 0);
    test.time.now -= 1;
    assert.equal(await test.keys.store.clockBehindMs(), UNIT_MS.m + 1);
    await given('B');
    assert.equal(await test.keys.store.clockBehindMs(), 0);
  });
});
