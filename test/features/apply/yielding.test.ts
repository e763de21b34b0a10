import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';
import { applyDeclared } from './declared-keys.ts';

const KEYS = 1000;

describe('an apply of a thousand keys', () => {
  it('lets others read in between, who see nothing of it until it is complete', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const { principal } = await createPrincipal(keys, { name: 'Admin', roles: ['ADMIN'] });
    const declared = Array.from({ length: KEYS }, (_, index) => ({ name: `Key ${index}`, roles: ['VIEWER'] }));
    const done = new AbortController();
    const applying = applyDeclared(keys, declared, {}, principal).finally(() => done.abort());
    const seen: boolean[] = [];
    let turns = 0;
    while (!done.signal.aborted) {
      const isThere = (await keys.findByName('Key 0', OPERATOR)) !== undefined;
      if (isThere !== seen.at(-1)) seen.push(isThere);
      turns += 1;
      await setImmediate();
    }
    await applying;
    assert.equal(seen[0], false);
    assert.ok(seen.length <= 2 && turns >= 5, JSON.stringify({ seen, turns }));
    assert.ok(await keys.findByName(`Key ${KEYS - 1}`, OPERATOR));
    await store.close();
  });
});
