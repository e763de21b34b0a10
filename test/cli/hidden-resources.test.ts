import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listen } from '../../src/http/listen.ts';
import { createApp, openKeys } from '../../src/index.ts';
import { testCli } from '../support/cli.ts';
import { query } from '../support/server.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

describe('hidden built-in resources', () => {
  it('work on the command line', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'resources: [WIKI]\nbuiltinResources: hidden\n');
    const cli = testCli();
    const run = (...args: string[]) => cli.run(args, { env: { SVC_API_CONFIG: config } });
    const { code } = await run('apikey', 'create', 'CI', '--permissions', 'DISK:READ_ANY,WIKI:READ_ANY');
    assert.equal(code, 0);
    assert.equal((await run('apikey', 'explain', 'CI', 'DISK:READ_ANY')).code, 0);
  });

  it('are not offered by a server, and are in its schema and in force for commands', async () => {
    const keys = await openKeys({ database: tempStore(), resources: ['WIKI'], builtinResources: 'hidden' });
    const server = await listen({ app: await createApp({ keys }), host: '127.0.0.1', port: 0 });
    try {
      const { key } = await keys.create({ name: 'Admin', roles: ['ADMIN'] }, { actor: 'operator' });
      const asked = '{ permissions { resources } __type(name: "Resource") { enumValues { name } } }';
      const { data } = (await query(server.url, key, asked)).body as {
        data: { permissions: { resources: string[] }; __type: { enumValues: { name: string }[] } };
      };
      assert.deepEqual(data.permissions.resources, ['WIKI']);
      assert.ok(data.__type.enumValues.some(({ name }) => name === 'DISK'));
      const env = { SVC_API_SERVER: server.url, SVC_API_KEY: key };
      const { code, stderr } = await testCli().run(['apikey', 'create', 'CI', '--permissions', 'DISK:READ_ANY'], {
        env: { ...env, SVC_API_DATABASE: undefined },
      });
      assert.equal(code, 0, stderr);
    } finally {
      await server.stop(0);
      await keys.close();
    }
  });
});
