import assert from 'node:assert/strict';
import { Consent } from '../../../src/features/consent/consent.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openTestKeys } from '../../support/keys.ts';

describe('options that a program misspells', () => {
  it('are refused, with the one that was meant', async () => {
    const { keys, store } = await openTestKeys();
    await assert.rejects(
      async () => keys.feature(Consent).approve({} as never, { role: ['GUEST'] } as never, OPERATOR),
      { code: 'OPTION_INVALID', message: /^approveConsentRequest: "role" is not an option\. Did you mean roles\?/ },
    );
    await store.close();
  });
});
