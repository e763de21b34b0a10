import assert from 'node:assert/strict';
import { statSync, truncateSync, writeFileSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOn } from '../support/dialects.ts';
import { startTestService, type TestService } from '../support/server.ts';

describeOn('sqlite', 'a server on a file', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startTestService();
    for (let index = 0; index < 20; index += 1)
      await test.keys.create({ name: `Key ${index}`, description: 'x'.repeat(500), roles: ['VIEWER'] }, OPERATOR);
  });
  afterEach(() => test.stop());
  const ready = async () => (await fetch(`${test.url}/readyz`)).status;

  it('is ready while keys are created, changed and deleted, even before changes reach the file', async () => {
    const reading = test.store.repository.pages(1)[Symbol.asyncIterator]();
    await reading.next();
    for (let index = 0; index < 20; index += 1) {
      const { apiKey } = await test.keys.create({ name: `More ${index}`, roles: ['VIEWER'] }, OPERATOR);
      assert.equal(await ready(), 200);
      if (index % 2 === 0) await test.keys.delete([apiKey.id], OPERATOR);
    }
    await reading.return?.();
    for await (const step of test.store.compact(0)) assert.equal(step, undefined);
    assert.equal(await ready(), 200);
  });

  for (const [what, left] of [
    ['half', 1 / 2],
    ['all but its last byte', 1],
    ['a hundredth', 1 / 100],
  ] as const)
    it(`is not ready once its file was cut off to ${what}`, async () => {
      assert.equal(await ready(), 200);
      const { size } = statSync(test.database);
      truncateSync(test.database, Math.min(Math.floor(size * left), size - 1));
      assert.equal(await ready(), 503);
      // The clean-up closes the store, which needs a file.
      writeFileSync(test.database, '');
    });
});
