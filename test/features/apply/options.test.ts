import assert from 'node:assert/strict';
import { Declarations } from '../../../src/features/apply/apply.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openTestKeys } from '../../support/keys.ts';

describe('options that a program misspells', () => {
  it('are refused, with the one that was meant', async () => {
    const { keys, store } = await openTestKeys();
    await assert.rejects(async () => keys.feature(Declarations).plan([], { prun: true } as never, OPERATOR), {
      code: 'OPTION_INVALID',
      message: /^keys\.declarations\.plan: "prun" is not an option\. Did you mean prune\?/,
    });
    await assert.rejects(async () => keys.feature(Declarations).apply([], { adpot: true } as never, OPERATOR), {
      code: 'OPTION_INVALID',
      message: /^keys\.declarations\.apply: "adpot" is not an option\. Did you mean adopt\?/,
    });
    await store.close();
  });
});
