import assert from 'node:assert/strict';
import { Hono } from 'hono';
import { bearerAuth, type BearerEnv, openKeys } from '../../src/index.ts';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { runProgramHere } from '../support/program-here.ts';
import { startServe } from '../support/serve.ts';
import { tempStore } from '../support/temp.ts';

/** The core without any feature: `npm run without -- all` runs this on a copy without features. */
describeAlwaysOnEach('the core', () => {
  it('creates, lists, rotates and deletes keys, serves GraphQL and checks bearer tokens', async () => {
    const database = tempStore();
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await runProgramHere(['apikey', ...args, '--json'], {
        env: { SVC_API_DATABASE: database },
      });
      assert.equal(code, 0, stderr || stdout);
      return JSON.parse(stdout) as { key: string; keys: { name: string; budgets: object[] }[] };
    };
    const { key: first } = await run('create', '--name', 'CI', '--roles', 'ADMIN');
    const { key } = await run('rotate', 'CI', '--grace', '0s');
    assert.notEqual(key, first);
    await run('create', '--name', 'Bot', '--roles', 'VIEWER', '--budget', '5');
    const { keys: listed } = await run('list');
    assert.deepEqual(Object.fromEntries(listed.map(({ name, budgets }) => [name, budgets])), {
      Bot: [{ limit: '5/budget', left: 5 }],
      CI: [],
    });

    const served = await startServe(database);
    try {
      const ask = async (secret: string) => {
        const answer = await fetch(`${served.url}/graphql`, {
          method: 'POST',
          headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
          body: JSON.stringify({ query: '{ me { name } }' }),
        });
        return [answer.status, answer.ok ? await answer.json() : undefined];
      };
      assert.deepEqual(await ask(key), [200, { data: { me: { name: 'CI' } } }]);
      assert.deepEqual(await ask(first), [401, undefined]);
    } finally {
      await served.stop();
    }

    const keys = await openKeys({ database });
    try {
      const app = new Hono<BearerEnv>().get('/', bearerAuth({ keys }), (c) => c.text(c.get('principal').apiKey.name));
      const check = async (secret: string) => {
        const answer = await app.request('/', { headers: { authorization: `Bearer ${secret}` } });
        return [answer.status, answer.ok ? await answer.text() : undefined];
      };
      assert.deepEqual(await check(key), [200, 'CI']);
      await run('delete', 'CI');
      assert.deepEqual(await check(key), [401, undefined]);
    } finally {
      await keys.close();
    }
  });
});
