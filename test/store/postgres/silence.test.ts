import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { openStore, type Store } from '../../../src/store/open.ts';
import { describeOn } from '../../support/dialects.ts';
import { type Proxy, startProxy } from '../../support/proxy.ts';
import { migratedStore } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

describeOn('postgres', 'a database server that is silent', () => {
  let proxy: Proxy;
  let store: Store;
  before(async () => {
    const url = new URL(await migratedStore());
    proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    // Longer than the test can take.
    store = await openStore({ database: url.href, lockWaitMs: 120_000 });
    await until(async () => store.repository.revision() !== undefined);
  });
  after(async () => {
    await store.close();
    proxy.close();
  });

  it('is not asked again until it answers: what needs it fails at once, and works then', async () => {
    proxy.block();
    const outcome = () =>
      Promise.race([
        store.repository.check().then(
          () => 'answered',
          (error: { code: string }) => error.code,
        ),
        delay(20, 'waits'),
      ]);
    await until(async () => (await outcome()) === 'STORE_UNAVAILABLE');
    await assert.rejects(
      store.repository.write(async () => {}),
      { code: 'STORE_UNAVAILABLE' },
    );
    proxy.unblock();
    await until(async () => (await outcome()) === 'answered');
  });
});
