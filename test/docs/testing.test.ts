import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import { bearerAuth, openKeys, OPERATOR } from '../../src/index.ts';
import { blocksOf, blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/testing.md';

describe(PAGE, () => {
  it('has programs and tests of them that pass, again and again', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(ROOT, join(folder, 'node_modules/svc-api'));
    symlinkSync(join(ROOT, 'node_modules/express'), join(folder, 'node_modules/express'));
    writeFileSync(join(folder, 'app.mjs'), blockWith('export function createApp', PAGE, 'js'));
    writeFileSync(join(folder, 'app.test.mjs'), blockWith("from './app.mjs'", PAGE, 'js'));
    writeFileSync(join(folder, 'partners.mjs'), blockWith('export const issue', PAGE, 'js'));
    writeFileSync(join(folder, 'partners.test.mjs'), blockWith("from './partners.mjs'", PAGE, 'js'));
    const [run, ...others] = blocksOf(PAGE);
    assert.deepEqual([others, blocksOf(PAGE, 'js').length], [[], 4]);
    for (let time = 0; time < 2; time += 1) {
      const { code, stdout, stderr } = await runBlock(run!, folder, { HOME: folder, PATH: pathWithCli(tempFolder()) });
      assert.equal(code, 0, stdout + stderr);
      assert.match(stdout, /pass 4\n/);
    }
  });

  it('shows how to call Hono, what is refused, and how to allow it', async () => {
    const keys = await openKeys({ database: ':memory:', resources: ['PET'] });
    const { key } = await keys.create({ name: 'Test', permissions: ['PET:READ_ANY'] }, { actor: OPERATOR });
    const statuses = async (failedCredentials?: false) => {
      const app = new Hono();
      const address = () => '192.0.2.1';
      app.use(
        bearerAuth({
          keys,
          permission: 'PET:READ_ANY',
          address,
          ...(failedCredentials === false && { failedCredentials }),
        }),
      );
      app.get('/', (c) => c.text('passed'));
      const statusOf = async (secret: string) =>
        (await app.request('/', { headers: { authorization: `Bearer ${secret}` } })).status;
      const found = new Set<number>();
      for (let count = 0; count < 25; count += 1) found.add(await statusOf('svc_nonsense'));
      return [...found, await statusOf(key)];
    };
    assert.deepEqual(await statuses(), [401, 429, 200]);
    assert.deepEqual(await statuses(false), [401, 200]);
    await keys.close();
  });
});
