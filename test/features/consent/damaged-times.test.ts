import assert from 'node:assert/strict';
import { changeDirectly } from '../../support/direct.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query } from '../../support/server.ts';
import { askDevice, startConsentService } from './support/consent.ts';

describeOnEach('an invalid time of a request in the store', () => {
  it('is the first or the last one of RFC 3339 over GraphQL', async () => {
    const test = await startConsentService();
    const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    await askDevice(test.url, { scope: 'role:GUEST' });
    const LAST = '9999-12-31T23:59:59.999Z';
    for (const [time, told] of [
      [9_000_000_000_000_000, LAST],
      [300_000_000_000_000, LAST],
      [-9_000_000_000_000_000, '0000-01-01T00:00:00.000Z'],
    ] as const) {
      // Expired requests are not listed.
      const change = `update consent_requests set created_at = ${time}, expires_at = ${Math.abs(time)}`;
      await changeDirectly(test.store.location, change);
      assert.deepEqual((await query(test.url, secret, '{ consentRequests { createdAt expiresAt } }')).body, {
        data: { consentRequests: [{ createdAt: told, expiresAt: LAST }] },
      });
    }
    await test.stop();
  });
});
