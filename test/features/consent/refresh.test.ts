import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { GivenPair } from '../../../src/features/consent/refresh.ts';
import { CONSENTS } from '../../../src/features/consent/consent-request.ts';
import { APP } from './support/consent.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { openTestKeys, type TestKeys, withPort } from '../../support/keys.ts';
import { Consent } from '../../../src/features/consent/consent.ts';

const HALF_HOUR = 30 * 60_000;

describeOnEach('an application that refreshes its key in two processes at once', () => {
  let test: TestKeys;
  /** Runs as another process after this one has read the token. */
  let meanwhile: (() => Promise<unknown>) | undefined;

  beforeEach(async () => {
    test = await openTestKeys({
      repository: (repository) =>
        withPort(repository, CONSENTS, (real) => ({
          async findRefresh(family) {
            const found = await real.findRefresh(family);
            const work = meanwhile;
            meanwhile = undefined;
            await work?.();
            return found;
          },
        })),
    });
  });
  afterEach(() => test.store.close());

  it('gets the same new pair in both', async () => {
    const { keys, time } = test;
    const client = { ...APP, refreshes: true };
    const { request, deviceCode } = await keys
      .feature(Consent)
      .ask({ client, roles: [], permissions: ['ONLINE:READ_ANY'] });
    await keys.feature(Consent).approve(request, {}, OPERATOR);
    const first = (await keys.feature(Consent).redeem({ clientId: client.id, deviceCode: deviceCode! })) as GivenPair;
    time.now += HALF_HOUR;
    const refresh = async () => {
      const shown = { clientId: client.id, refreshToken: first.refreshToken!, audience: undefined };
      const { apiKey: _, ...pair } = (await keys.feature(Consent).refresh(shown)) as GivenPair;
      return pair;
    };
    let other: object | undefined;
    meanwhile = async () => (other = await refresh());
    assert.deepEqual(await refresh(), other);
    assert.ok(other && 'key' in other, JSON.stringify(other));
  });
});

describeOnEach('an application whose key was replaced', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  it('can still refresh it if that was reverted', async () => {
    const { keys, time } = test;
    const client = { ...APP, refreshes: true };
    const consent = keys.feature(Consent);
    const { request, deviceCode } = await consent.ask({ client, roles: [], permissions: ['ONLINE:READ_ANY'] });
    await consent.approve(request, {}, OPERATOR);
    const first = (await consent.redeem({ clientId: client.id, deviceCode: deviceCode! })) as GivenPair;
    const deliver = () => Promise.reject(new Error('stdout is closed'));
    const other = { name: first.apiKey.name, roles: ['GUEST'], overwrite: true };
    await assert.rejects(keys.create(other, OPERATOR, { deliver }), /stdout is closed/);
    time.now += HALF_HOUR;
    const shown = { clientId: client.id, refreshToken: first.refreshToken!, audience: undefined };
    const next = await consent.refresh(shown);
    assert.ok('key' in next && next.key !== first.key, JSON.stringify(next));
  });
});
