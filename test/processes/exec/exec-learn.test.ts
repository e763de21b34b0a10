import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { configFile } from '../../support/config-file.ts';
import { testCli } from '../../support/cli.ts';
import { runCli } from '../../support/process.ts';
import { startServe } from '../../support/serve.ts';
import { migratedStore, tempFolder } from '../../support/temp.ts';

describe('exec --learn', () => {
  const learn = async (database: string, script: string, program = process.execPath) => {
    const args = ['apikey', 'exec', '--learn', '--database', database, '--', program, '-e', script];
    const { code, stderr } = await runCli(args);
    return { code, stderr };
  };

  it('says which permissions a command used, as flags and as an entry of a file, and deletes its key', async () => {
    const database = await migratedStore();
    const server = await startServe(database);
    try {
      const query = JSON.stringify({ query: '{ info { name } apiKeys { edges { node { name } } } }' });
      const { code, stderr } = await learn(
        database,
        `fetch('${server.url}/graphql', {
          method: 'POST',
          headers: { authorization: 'Bearer ' + process.env.API_KEY, 'content-type': 'application/json' },
          body: ${JSON.stringify(query)},
        }).then(async (answer) => process.exit((await answer.json()).errors ? 9 : 3))`,
      );
      assert.equal(code, 3, stderr);
      const [, flags, entry] = /:\n {2}(.*)\nThe same in a file for apply:\n([^]*)$/.exec(stderr)!;
      assert.equal(flags, '--permissions API_KEY:READ_ANY,INFO:READ_ANY');
      const permissions = ['API_KEY:READ_ANY', 'INFO:READ_ANY'];
      assert.deepEqual(parse(entry!), [{ name: 'node', permissions }]);
      assert.deepEqual(JSON.parse((await testCli(database).run(['apikey', 'list', '--json'])).stdout).keys, []);
    } finally {
      await server.stop();
    }
  });

  it('writes a name as text that YAML would read as something else', async () => {
    const database = await migratedStore();
    const server = await startServe(database);
    try {
      const program = join(tempFolder(), '42');
      symlinkSync(process.execPath, program);
      const { stderr } = await learn(
        database,
        `fetch('${server.url}/graphql', {
          method: 'POST',
          headers: { authorization: 'Bearer ' + process.env.API_KEY, 'content-type': 'application/json' },
          body: '{"query":"{ info { name } }"}',
        })`,
        program,
      );
      const [, entry] = /:\nThe same in a file for apply:\n([^]*)$/.exec(stderr.replace(/\n {2}--.*/, '')) ?? [];
      assert.deepEqual(parse(entry!), [{ name: '42', permissions: ['INFO:READ_ANY'] }]);
    } finally {
      await server.stop();
    }
  });

  it('names the routes that let its requests pass, in whatever way', async () => {
    const database = await migratedStore();
    const config = configFile(`routes:
  - { host: wiki.example.org, path: /api/**, methods: [GET], allow: key }
  - { host: wiki.example.org, path: /**, allow: DOCKER:READ_ANY, observe: true }
  - { host: wiki.example.org, path: /other, allow: key }
`);
    const server = await startServe(database, ['--port', '0', '--config', config]);
    try {
      const { code, stderr } = await learn(
        database,
        `Promise.all(['/api/pages/1', '/api/pages/2', '/home'].map((path) => fetch('${server.url}/auth/traefik', {
          headers: { authorization: 'Bearer ' + process.env.API_KEY, 'x-forwarded-method': 'GET',
            'x-forwarded-proto': 'https', 'x-forwarded-host': 'wiki.example.org', 'x-forwarded-uri': path,
            'x-forwarded-for': '192.0.2.1' },
        }).then(({ status }) => status))).then((all) => process.exit(all.join() === '200,200,200' ? 3 : 9))`,
      );
      assert.equal(code, 3, stderr);
      assert.match(stderr, /--permissions DOCKER:READ_ANY\n/);
      assert.match(
        stderr,
        /Routes that let it pass:\n {2}GET wiki\.example\.org\/api\/\*\*\n {2}wiki\.example\.org\/\*\*\n$/,
      );
    } finally {
      await server.stop();
    }
  });

  it('says so where no server has seen the key', async () => {
    const { code, stderr } = await learn(await migratedStore(), '0');
    assert.deepEqual([code, stderr], [0, '"node" used no key: no server has seen it.\n']);
  });
});
