import assert from 'node:assert/strict';
import { Transfer } from '../../../src/features/transfer/transfer.ts';
import { openTestKeys } from '../../support/keys.ts';

describe('options that a program misspells', () => {
  it('are refused, with the one that was meant', async () => {
    const { keys, store } = await openTestKeys();
    await assert.rejects(
      async () => keys.feature(Transfer).import((async function* () {})(), { dryrun: true } as never),
      { code: 'OPTION_INVALID', message: /^keys\.transfer\.import: "dryrun" is not an option\. Did you mean dryRun\?/ },
    );
    await assert.rejects(async () => keys.feature(Transfer).export({ withDigest: true } as never), {
      code: 'OPTION_INVALID',
      message: /^keys\.transfer\.export: "withDigest" is not an option\. Did you mean withDigests\?/,
    });
    await store.close();
  });
});
