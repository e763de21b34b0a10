import assert from 'node:assert/strict';
import type { KeyJson } from '../../src/cli/views/key-view.ts';
import { UnusedKeys } from '../../src/features/unused-keys/unused-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { UNIT_MS } from '../../src/keys/basics/duration.ts';
import { NO_POLICY } from '../../src/keys/permissions/policy.ts';
import { testCli } from '../support/cli.ts';
import { authenticate, createPrincipal, openTestKeys } from '../support/keys.ts';
import { cliOnTerminal } from '../support/pty.ts';
import { query, startTestService } from '../support/server.ts';

describe('a key that the policy has disabled', () => {
  it('is marked over GraphQL', async () => {
    const test = await startTestService();
    await test.keys.create({ name: 'Admin', roles: ['ADMIN'], expiresIn: '90d' }, OPERATOR);
    const keys = test.keys.withCatalog({ ...test.keys.catalog, policy: { ...NO_POLICY, disableUnused: 86_400_000 } });
    test.time.now += 1;
    await test.keys.create({ name: 'Idle', roles: ['VIEWER'], expiresIn: '90d' }, OPERATOR);
    test.time.now += 1;
    const { secret } = await createPrincipal(test.keys, { name: 'Reader', roles: ['ADMIN'], expiresIn: '90d' });
    test.time.now += 2 * 86_400_000;
    await authenticate(test.keys, secret);
    await test.keys.finishActivity();
    for await (const _ of keys.feature(UnusedKeys).disableUnused());
    const document = `{
      apiKeys { edges { node { name disabledByPolicy } } }
      auditLog(action: DISABLE) { edges { node { actor { kind name keyId } keyName } } }
    }`;
    const { body } = await query(test.url, secret, document);
    await test.stop();
    const actor = { kind: 'POLICY', name: 'disableUnused: 1d', keyId: null };
    assert.deepEqual(body, {
      data: {
        apiKeys: {
          edges: [
            { node: { name: 'Admin', disabledByPolicy: true } },
            { node: { name: 'Idle', disabledByPolicy: true } },
            { node: { name: 'Reader', disabledByPolicy: false } },
          ],
        },
        auditLog: {
          edges: ['Idle', 'Admin'].map((keyName) => ({ node: { actor, keyName } })),
        },
      },
    });
  });

  it('is shown by list and show', async () => {
    const cli = testCli();
    const passes = async (...args: string[]) => {
      const { code, stderr, stdout } = await cli.run(['apikey', ...args]);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const earlier = await openTestKeys({ database: cli.database, policy: { disableUnused: '60d' } });
    earlier.time.now = Date.now() - 61 * UNIT_MS.d;
    for (const name of ['Idle', 'By hand']) await earlier.keys.create({ name, roles: ['VIEWER'] }, OPERATOR);
    await passes('disable', 'By hand');
    earlier.time.now = Date.now();
    for await (const _ of earlier.keys.feature(UnusedKeys).disableUnused());
    await earlier.store.close();
    const { keys } = JSON.parse(await passes('list', '--json')) as { keys: KeyJson[] };
    const states = keys.map(({ name, status, disabledByPolicy }) => `${name} ${status} ${disabledByPolicy}`);
    assert.deepEqual(states.toSorted(), ['By hand DISABLED false', 'Idle DISABLED true']);
    assert.match(await passes('show', 'Idle'), /^disabledByPolicy +true$/m);
    const log = await passes('log', '--action', 'DISABLE', '--key', 'Idle');
    assert.match(log, /\tpolicy disableUnused: 60d\tDISABLE\tIdle\t/);
    const terminal = cliOnTerminal(['apikey', 'list'], { SVC_API_DATABASE: cli.database });
    assert.equal(await terminal.end(), 0);
    assert.match(terminal.screen, /Idle +VIEWER +DISABLED, unused/);
    assert.match(terminal.screen, /By hand +VIEWER +DISABLED +never/);
  });
});
