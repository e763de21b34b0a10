import assert from 'node:assert/strict';
import { createApp, openKeys } from '../../../src/index.ts';
import { tempStore } from '../../support/temp.ts';

describe('clients, as an option of createApp', () => {
  it('are refused with an unknown field', async () => {
    const keys = await openKeys({ database: tempStore(), consent: 'both' });
    await assert.rejects(createApp({ keys, clients: [{ id: 'a', name: 'A', redirect: [] } as never] }), {
      code: 'OPTION_INVALID',
      message: 'createApp: "clients[0].redirect" is not an option. Did you mean redirects?',
    });
    await keys.close();
  });
});
