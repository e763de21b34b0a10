import assert from 'node:assert/strict';
import { listen } from '../../../src/http/listen.ts';
import { createApp, openKeys } from '../../../src/index.ts';
import { tempStore } from '../../support/temp.ts';
import { Visitor } from './support/console.ts';

describe('hidden built-in resources in the console', () => {
  it('are offered by no form, except where a key has one', async () => {
    const keys = await openKeys({ database: tempStore(), resources: ['WIKI'], builtinResources: 'hidden' });
    const server = await listen({ app: await createApp({ keys, console: true }), host: '127.0.0.1', port: 0 });
    try {
      const { key } = await keys.create({ name: 'Admin', roles: ['ADMIN'] }, { actor: 'operator' });
      const { apiKey } = await keys.create({ name: 'CI', permissions: ['DISK:READ_ANY'] }, { actor: 'operator' });
      const visitor = new Visitor(server.url);
      await visitor.signIn(key);
      const { html } = await visitor.open('keys/new');
      assert.match(html, /resource-WIKI/);
      assert.doesNotMatch(html, /resource-DISK|Deploy services/);
      for (const path of [`keys/${apiKey.id}`, 'routes']) {
        const { html: page } = await visitor.open(path);
        assert.match(page, /WIKI:(?:READ|UPDATE)_ANY/);
        assert.doesNotMatch(page, /DASHBOARD/);
      }
      const { html: edited } = await visitor.open(`keys/${apiKey.id}/edit`);
      assert.match(edited, /resource-DISK/);
    } finally {
      await server.stop(0);
      await keys.close();
    }
  });
});
