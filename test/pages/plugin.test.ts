import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readExtension } from '../../src/cli/extension.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { openTestKeys } from '../support/keys.ts';
import { testCli } from '../support/cli.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const PAGE = readFileSync(join(ROOT, 'docs/plugin.md'), 'utf8');

/** The block that has a text. */
function blockWith(text: string): string {
  const blocks = Array.from(PAGE.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms), ([, block]) => block!);
  return blocks.find((block) => block.includes(text)) ?? assert.fail(`no block has ${text}`);
}

describe('docs/plugin.md', () => {
  it('has a hook whose part of the schema is taken', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'hooks'));
    writeFileSync(join(folder, 'hooks/schema.mjs'), blockWith('export default async function schema()'));
    writeFileSync(join(folder, 'resolvers.js'), 'export const resolvers = { Query: { backups: () => [] } };');
    const hook = (await import(pathToFileURL(join(folder, 'hooks/schema.mjs')).href)) as {
      default: () => Promise<unknown>;
    };
    const extension = readExtension(await hook.default());
    assert.deepEqual(extension.resources, ['BACKUP']);
    const { keys, store } = await openTestKeys({ resources: ['BACKUP'] });
    const schema = await createSchema(keys, { name: 'x', version: '1', startedAt: 0 }, [
      { ...extension, resolvers: { Query: { backups: () => [] } } },
    ]);
    assert.ok(schema.getQueryType()!.getFields()['backups']);
    await store.close();
  });

  it('has a program that guards an app, and checks again once a body is read', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI', { permissions: ['DOCKER:READ_ANY'] });
    const { key: other } = await cli.given('Guest', { roles: ['GUEST'] });
    const port = await freePort();
    const [imports, ...rest] = blockWith("import { bearerAuth, listen, openKeys } from 'svc-api'").split('\n\n');
    const [start, listening] = rest.join('\n\n').split(/(?=^await listen)/m);
    const program = [
      imports!
        .replace("'svc-api'", `'${pathToFileURL(join(ROOT, 'dist/index.js')).href}'`)
        .replace("'hono'", `'${import.meta.resolve('hono')}'`),
      'const backUp = async (disk) => ({ disk });',
      start,
      blockWith("c.get('checkAgain')"),
      listening!.replace('4000', String(port)),
    ].join('\n');
    const file = join(tempFolder(), 'program.mjs');
    writeFileSync(file, program);
    const child = spawn(process.execPath, [file], {
      env: cleanEnv({ SVC_API_DATABASE: cli.database }),
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    try {
      const url = `http://127.0.0.1:${port}`;
      const ask = async (path: string, token: string, init: RequestInit = {}) => {
        const reply = await fetch(url + path, { ...init, headers: { authorization: `Bearer ${token}` } });
        return [reply.status, await reply.json()];
      };
      await until(() =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      );
      assert.deepEqual(await ask('/backups/latest', key), [200, { by: 'CI' }]);
      assert.equal((await ask('/backups/latest', other))[0], 403);
      const init = { method: 'POST', body: '{"disk":"sda"}' };
      assert.deepEqual(await ask('/backups', key, init), [200, { disk: 'sda' }]);
    } finally {
      child.kill();
    }
  });
});
