import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { jsonLines, openTestKeys } from '../../support/keys.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const KEYS = 5000;

describe('the memory of a verified key', () => {
  it('is less than 1 KB, as docs/operations.md says', async () => {
    const { keys, store } = await openTestKeys();
    const secrets = Array.from({ length: KEYS }, () => createSecret(randomBytes).text);
    const lines = secrets.map((secret, index) => ({ name: `Key ${index}`, roles: ['VIEWER'], secret }));
    assert.equal((await keys.importKeys(jsonLines(...lines))).failed, 0);
    const check = async (some: string[]) => {
      for (const secret of some) assert.ok('principal' in (await keys.authenticate(secret)));
      await keys.finishActivity();
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const few = await check(secrets.slice(0, KEYS / 10));
    const all = await check(secrets);
    const bytes = (all - few) / (0.9 * KEYS);
    assert.ok(bytes > 100 && bytes < 1024, `${bytes} bytes`);
    await store.close();
  });
});
