import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { createSecret } from '../../src/keys/secret/secret.ts';
import { authenticate, jsonLines, openTestKeys } from './keys.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';

/** Prints how many bytes of heap a verified key takes. Needs `--expose-gc`. */
const KEYS = 5000;
const { keys, store } = await openTestKeys();
const secrets = Array.from({ length: KEYS }, () => createSecret(randomBytes).text);
const lines = secrets.map((secret, index) => ({ name: `Key ${index}`, roles: ['VIEWER'], secret }));
if ((await importKeys(keys, jsonLines(...lines))).failed > 0) throw new Error('Not all keys were imported.');
const few = await heapAfter(secrets.slice(0, KEYS / 10));
const all = await heapAfter(secrets);
process.stdout.write(((all - few) / (0.9 * KEYS)).toFixed());
await store.close();

async function heapAfter(some: readonly string[]): Promise<number> {
  for (const secret of some)
    if (!('principal' in (await authenticate(keys, secret)))) throw new Error('A key was refused.');
  await keys.finishActivity();
  // Finalizers and timers keep leftovers of the import alive for some turns.
  for (let time = 0; time < 5; time += 1) {
    await setImmediate();
    globalThis.gc!();
  }
  return process.memoryUsage().heapUsed;
}
