import assert from 'node:assert/strict';
import { Leaks } from '../../../src/features/leaks/leaks.ts';
import { openTestKeys } from '../../support/keys.ts';

describe('options that a program misspells', () => {
  it('are refused, with the one that was meant', async () => {
    const { keys, store } = await openTestKeys();
    await assert.rejects(async () => keys.feature(Leaks).note({ id: 'id', publicID: 'x', place: 'y' } as never), {
      code: 'OPTION_INVALID',
      message: /^keys\.leaks\.note: "publicID" is not an option\. Did you mean publicId\?/,
    });
    await store.close();
  });
});
