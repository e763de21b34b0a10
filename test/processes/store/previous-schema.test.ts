import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { testCli } from '../../support/cli.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { previousSchema } from '../../support/previous-schema.ts';
import { BIN, cleanEnv, type Finished, finished } from '../../support/process.ts';
import { query } from '../../support/server.ts';
import { tempStore } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

const CREATE =
  'mutation ($name: String!) { createApiKey(input: { name: $name, roles: [GUEST] }) { key apiKey { id } } }';
const DELETE = 'mutation ($id: ID!) { deleteApiKeys(ids: [$id]) { deleted } }';
const NAMES = '{ apiKeys { edges { node { name } } } }';
/** Those past the limit of failed credentials are refused by it. */
const REFUSED: ReadonlySet<number> = new Set([401, 429]);

describeOnEach('a server of the previous schema, on a store that a newer version has migrated', () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  it('goes on beside a newer server: keys are created, read, refused and deleted on both', async function () {
    const { bin: old, commit } = previousSchema(this);
    const database = tempStore();
    const start = (bin: string, ...args: string[]): ChildProcess => {
      const child = spawn(process.execPath, [bin, ...args], {
        env: cleanEnv({ SVC_API_DATABASE: database, LOG_LEVEL: 'error' }),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      started.push(child);
      return child;
    };
    const run = (bin: string, ...args: string[]): Promise<Finished> => finished(start(bin, ...args));
    const create = async (bin: string, name: string) => {
      const { code, stdout, stderr } = await run(bin, 'apikey', 'create', '--name', name, '--roles', 'ADMIN');
      assert.equal(code, 0, `${commit}: ${stderr}`);
      return stdout.trim();
    };
    const serve = async (bin: string) => {
      const child = start(bin, 'serve', '--port', '0');
      const end = finished(child);
      const first = await Promise.race([once(child.stdout!, 'data'), end]);
      const url = /^Listening on (\S+)\n$/.exec(String((first as [string])[0]))?.[1];
      assert.ok(url, `${commit}: ${JSON.stringify(first)}`);
      return { url, child, end };
    };

    const before = await create(old, 'Made before');
    const oldServer = await serve(old);
    assert.equal((await query(oldServer.url, before, '{ me { name } }')).status, 200);
    const after = await create(BIN, 'Made after');
    const newServer = await serve(BIN);
    const servers = [oldServer, newServer] as const;
    const statuses = (secret: string) =>
      Promise.all(servers.map(async ({ url }) => (await query(url, secret, '{ me { name } }')).status));

    for (const secret of [before, after]) assert.deepEqual(await statuses(secret), [200, 200], commit);
    for (const [one, other] of [servers, [newServer, oldServer]] as const) {
      const named = await query(one.url, before, CREATE, { name: one === oldServer ? 'By the old' : 'By the new' });
      const { key, apiKey } = named.body.data!['createApiKey'] as { key: string; apiKey: { id: string } };
      assert.deepEqual(await statuses(key), [200, 200]);
      const { body } = await query(other.url, before, DELETE, { id: apiKey.id });
      assert.deepEqual(body.data, { deleteApiKeys: { deleted: 1 } }, JSON.stringify(body));
      // PostgreSQL notifies the other one some milliseconds later.
      await until(async () => (await statuses(key)).every((status) => REFUSED.has(status)));
    }
    for (const { url } of servers) {
      const { body } = await query(url, after, NAMES);
      const { edges } = body.data!['apiKeys'] as { edges: { node: { name: string } }[] };
      assert.deepEqual(edges.map(({ node }) => node.name).toSorted(), ['Made after', 'Made before']);
    }
    // A command of the old version, and a server that is started anew, would have to open the store.
    const refused = await run(old, 'apikey', 'list');
    assert.deepEqual([refused.code, /Code: STORE_NEWER/.test(refused.stderr)], [1, true], refused.stderr);
    for (const { child, end } of servers) {
      child.kill('SIGTERM');
      const { code, stderr } = await end;
      assert.deepEqual([code, stderr], [0, ''], commit);
    }
    const verified = await testCli(database).run(['apikey', 'log', '--verify']);
    assert.equal(verified.code, 0, verified.stderr);
  });
});
