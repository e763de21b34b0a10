import assert from 'node:assert/strict';
import { readExpiry, validateExpiry } from '../../../src/keys/key/expiry.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

const NOW = Date.UTC(2030, 0, 1);

describeOnEach('the expiry of a key', () => {
  it('is in the future, at most ten years away, and said once', () => {
    const issues = [
      [{ expiresAt: '2029-12-31T23:59:59Z' }, /in the past/],
      [{ expiresAt: '2030-01-01T00:00:00Z' }, /in the past/],
      [{ expiresIn: '3654d' }, /more than ten years away/],
      [{ expiresAt: '2090-01-01T00:00:00Z' }, /more than ten years away/],
      [{ expiresIn: 'soon' }, /"soon" is not a duration/],
      [{ expiresIn: '1M' }, /^"1M" is not a duration\. Units are lower case: 1m is 1 minute; for months write 30d\.$/],
      [{ expiresIn: '3M' }, /3m is 3 minutes; for months write 90d\.$/],
      [{ expiresIn: '1y' }, /^"1y" is not a duration\. Did you mean 365d\? The units are s, m, h, d and w\.$/],
      [{ expiresIn: '1month' }, /^"1month" is not a duration\. Did you mean 30d\?/],
      [{ expiresIn: '2 Weeks' }, /^"2 Weeks" is not a duration\. Did you mean 2w\?/],
      [{ expiresIn: '0d' }, /^"0d" is not a duration\. Write a number/],
      [
        { expiresAt: '2027-02-30' },
        /^"2027-02-30" is not an RFC 3339 date and time\. There is no day 2027-02-30: 2027-02 has the days 01 to 28\.$/,
      ],
      [{ expiresAt: '2028-02-30T00:00:00Z' }, /There is no day 2028-02-30: 2028-02 has the days 01 to 29\.$/],
      [{ expiresAt: '2027-13-01T00:00:00Z' }, /There is no day 2027-13-01: a year has the months 01 to 12\.$/],
      [{ expiresIn: '12H' }, /^"12H" is not a duration\. Units are lower case: write 12h\.$/],
      [{ expiresAt: 'soon' }, /"soon" is not an RFC 3339 date and time/],
      [{ expiresAt: '2030-02-30' }, /"2030-02-30" is not an RFC 3339 date and time/],
      [
        { expiresAt: ' 2030-06-01' },
        /^"2030-06-01" has no time\. Write 2030-06-01T00:00:00Z for its start in UTC, or 2030-06-01T23:59:59Z for its end\.$/,
      ],
      [{ expiresIn: '1h', expiresAt: '2030-06-01T12:00:00Z' }, /not both/],
    ] as const;
    for (const [request, message] of issues) {
      const issue = readExpiry(request, NOW) as { code: string; message: string };
      assert.equal(issue.code, 'EXPIRY_INVALID');
      assert.match(issue.message, message);
      assert.deepEqual(validateExpiry(request, NOW), [issue]);
    }
    for (const valid of [{}, { expiresAt: null }, { expiresIn: '1h' }])
      assert.deepEqual(validateExpiry(valid, NOW), []);
    assert.equal(readExpiry({ expiresIn: '1h' }, NOW), NOW + 3_600_000);
    assert.equal(readExpiry({ expiresIn: '3653d' }, NOW), Date.UTC(2040, 0, 2));
    assert.equal(readExpiry({ expiresAt: null }, NOW), null);
    assert.equal(readExpiry({}, NOW), null);
  });
});

describeOnEach('a key that expires', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const refusal = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'refused' in result ? result.refused : undefined;
  };
  const names = async (status: string) => (await test.keys.list({ status }, OPERATOR)).keys.map(({ name }) => name);

  it('is accepted until the instant before, and refused from that instant on, but stays listed', async () => {
    const { key: secret, apiKey: key } = await test.keys.create(
      { name: 'Short', roles: ['GUEST'], expiresIn: '90m' },
      OPERATOR,
    );
    assert.equal(key.expiresAt, NOW + 5_400_000);
    test.time.now = NOW + 5_400_000 - 1;
    assert.equal(await refusal(secret), undefined);
    assert.deepEqual(await names('active'), ['Short']);
    test.time.now += 1;
    assert.equal(await refusal(secret), 'expired');
    assert.deepEqual([await names('active'), await names('expired'), await names('disabled')], [[], ['Short'], []]);
    await test.keys.update(key.id, { expiresAt: null }, OPERATOR);
    assert.equal(await refusal(secret), undefined);
  });

  it('is refused while it is disabled, and says which comes first', async () => {
    const { key: secret, apiKey: key } = await test.keys.create(
      { name: 'Off', roles: ['GUEST'], expiresIn: '1h' },
      OPERATOR,
    );
    const { after } = await test.keys.setEnabled(key.id, false, OPERATOR);
    assert.equal(after.disabledAt, NOW);
    assert.equal(await refusal(secret), 'disabled');
    assert.deepEqual(await names('disabled'), ['Off']);
    assert.deepEqual((await test.keys.setEnabled(key.id, false, OPERATOR)).after, after, 'again changes nothing');
    test.time.now += 3_600_000;
    assert.equal(await refusal(secret), 'expired');
    assert.deepEqual([await names('disabled'), await names('expired')], [[], ['Off']]);
    test.time.now = NOW;
    await test.keys.setEnabled(key.id, true, OPERATOR);
    assert.equal(await refusal(secret), undefined);
  });

  it('gives no other key a later expiry: not by creating it, not by changing itself', async () => {
    const permissions = ['API_KEY:CREATE_ANY', 'API_KEY:UPDATE_ANY'];
    const { principal } = await createPrincipal(test.keys, { name: 'Temporary', permissions, expiresIn: '1h' });
    const make = (name: string, end: object) => test.keys.create({ name, permissions, ...end }, principal);
    assert.equal((await make('As long', {})).apiKey.expiresAt, principal.apiKey.expiresAt);
    assert.equal((await make('Shorter', { expiresIn: '30m' })).apiKey.expiresAt, NOW + 1_800_000);
    const forbidden = {
      code: 'FORBIDDEN',
      message: 'A key cannot grant more than it holds: this key expires at 2030-01-01T01:00:00.000Z.',
      missing: [],
    };
    await assert.rejects(make('Longer', { expiresIn: '61m' }), forbidden);
    await assert.rejects(make('For ever', { expiresAt: null }), forbidden);
    await assert.rejects(test.keys.update(principal.apiKey.id, { expiresIn: '2h' }, principal), forbidden);
    await assert.rejects(test.keys.update(principal.apiKey.id, { expiresAt: null }, principal), forbidden);
    assert.equal(
      (await test.keys.update(principal.apiKey.id, { description: 'x' }, principal)).after.expiresAt,
      principal.apiKey.expiresAt,
    );
  });

  it('is listed by role and status, case-insensitively', async () => {
    await test.keys.create({ name: 'A', roles: ['ADMIN'] }, OPERATOR);
    test.time.now += 1;
    await test.keys.create({ name: 'B', roles: ['VIEWER', 'CONNECT'] }, OPERATOR);
    const list = async (query: object) => (await test.keys.list(query, OPERATOR)).keys.map(({ name }) => name);
    assert.deepEqual(await list({ roles: ['connect', 'guest'] }), ['B']);
    assert.deepEqual(await list({ roles: ['ADMIN', 'VIEWER'] }), ['A', 'B']);
    assert.deepEqual(await list({ status: ' active ' }), ['A', 'B']);
    await assert.rejects(list({ roles: ['ADMN'] }), { code: 'ROLE_INVALID' });
    await assert.rejects(list({ status: 'gone' }), {
      code: 'INPUT_INVALID',
      message: '"gone" is not a status. The statuses are ACTIVE, DISABLED and EXPIRED.',
    });
    await assert.rejects(list({ status: '' }), { code: 'INPUT_INVALID' });
  });
});
