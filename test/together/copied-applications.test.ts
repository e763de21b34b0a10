import assert from 'node:assert/strict';
import { copyStore } from '../../src/features/backup/copy-store.ts';
import { CONSENTS } from '../../src/features/consent/consent-request.ts';
import { openConnection } from '../../src/store/open.ts';
import { alteringTrigger } from '../features/backup/support/altering-trigger.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly, readDirectly } from '../support/direct.ts';
import { STORES } from '../support/features.ts';
import { createPrincipal, openTestKeys } from '../support/keys.ts';
import { makeStore, tempStore } from '../support/temp.ts';

describeOnEach('copying a store with a key of an application', () => {
  /** Copies a store with applications. */
  async function copy(to: string) {
    const from = tempStore();
    const { keys, store } = await openTestKeys({ database: from });
    const { principal } = await createPrincipal(keys, { name: 'Grafana', roles: ['GUEST'] });
    const { id } = principal.apiKey;
    await store.repository.write((writer) => writer.port(CONSENTS).rememberClient(id, { clientId: 'grafana-sync' }));
    await store.close();
    const [source, target] = [
      await openConnection({ database: from, features: STORES }),
      await openConnection({ database: to, features: STORES }),
    ];
    try {
      await copyStore(source, target);
    } finally {
      await source.close();
      await target.close();
    }
    return readDirectly(from, 'select * from application_keys');
  }

  it('copies whose key it is', async () => {
    const to = tempStore();
    const rows = await copy(to);
    assert.equal(rows.length, 1);
    assert.deepEqual(await readDirectly(to, 'select * from application_keys'), rows);
  });

  it('is refused where that comes out otherwise', async () => {
    const to = tempStore();
    await makeStore(to);
    await changeDirectly(to, ...alteringTrigger(to, 'application_keys', 'client_id'));
    await assert.rejects(copy(to), { code: 'STORE_FAILED', message: /^The copy of application_keys in / });
    assert.deepEqual(await readDirectly(to, 'select id from api_keys'), []);
  });
});
