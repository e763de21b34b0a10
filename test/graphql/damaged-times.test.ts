import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { changeDirectly, unlockAuditLog } from '../support/direct.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService } from '../support/server.ts';

const DOCUMENT = `{
  apiKey(name: "Damaged") { createdAt lastUsedAt rotation { previousLastUsedAt } descendants { lastUsedAt } }
  apiKeys(search: "Damaged") { edges { node { createdAt lastUsedAt } } }
  auditLog(first: 1) { edges { node { at } } }
}`;

describeOnEach('an invalid time in the store', () => {
  it('is the first or the last one of RFC 3339 over GraphQL, so that lists do not fail for one row', async () => {
    const test = await startTestService();
    const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const damaged = await createPrincipal(test.keys, { name: 'Damaged', permissions: ['API_KEY:CREATE_OWN'] });
    await createPrincipal(test.keys, { name: 'Child', permissions: ['API_KEY:CREATE_OWN'] }, damaged.principal);
    await test.keys.rotate(damaged.principal.apiKey.id, { grace: '24h' }, OPERATOR);
    await unlockAuditLog(test.store.location);

    const setAll = (time: number) =>
      changeDirectly(
        test.store.location,
        `update api_keys set created_at = ${time} where name <> 'Admin'`,
        'delete from key_uses',
        `insert into key_uses select id, 1, ${time}, ${time} from api_keys`,
        `update audit_log set at = ${time}`,
      );
    const LAST = '9999-12-31T23:59:59.999Z';
    for (const [time, told] of [
      [9_000_000_000_000_000, LAST],
      [300_000_000_000_000, LAST],
      [-9_000_000_000_000_000, '0000-01-01T00:00:00.000Z'],
    ] as const) {
      await setAll(time);
      // A use before all keys existed counts neither as the last use nor as one since the rotation.
      const lastOf = time < 0 ? null : told;
      const fields = { createdAt: told, lastUsedAt: told };
      const rotation = { previousLastUsedAt: lastOf };
      assert.deepEqual((await query(test.url, secret, DOCUMENT)).body, {
        data: {
          apiKey: { ...fields, rotation, descendants: { lastUsedAt: lastOf } },
          apiKeys: { edges: [{ node: fields }] },
          auditLog: { edges: [{ node: { at: told } }] },
        },
      });
    }
    await test.stop();
  });
});
