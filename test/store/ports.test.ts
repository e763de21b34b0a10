import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { declarePort } from '../../src/keys/basics/port.ts';
import { portsOf } from '../../src/store/port-of-store.ts';
import { PORTS } from '../../src/store/ports.ts';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { openTestKeys } from '../support/keys.ts';
import { ROOT } from '../support/process.ts';
import { STORES } from '../support/features.ts';

describeAlwaysOnEach('the data that a store keeps for features', () => {
  it('is all that any of them declares', () => {
    const declared = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
      Array.from(
        readFileSync(join(ROOT, file), 'utf8').matchAll(/= declarePort<[^;]*>\('([^']+)'\)/g),
        ([, name]) => name!,
      ),
    );
    assert.ok(declared.length > 5);
    assert.deepEqual(declared.toSorted(), [...PORTS, ...portsOf(STORES)].map(({ port }) => port.name).toSorted());
  });

  it('is nothing else', async () => {
    const { store } = await openTestKeys();
    const unknown = declarePort<{ find(): void }>('wishes');
    const message = 'The store keeps nothing for "wishes".';
    assert.throws(() => store.repository.port(unknown), { message });
    await store.repository.write(async (writer) => assert.throws(() => writer.port(unknown), { message }));
    await store.close();
  });
});
