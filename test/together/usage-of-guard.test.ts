import assert from 'node:assert/strict';
import { byRoutes } from '../../src/features/guard/access.ts';
import { createRouter } from '../../src/features/routes/index.ts';
import { suggestGrants, USED_GRANTS } from '../../src/features/usage/suggest.ts';
import { ASKING, keyLine, routeTo, startAskedServer, withHeaders } from '../features/guard/support/forward-auth.ts';
import { startGuarded } from '../features/guard/support/guard.ts';
import { describeOutcomes, PERMISSION } from '../features/usage/support/outcomes.ts';
import { createPrincipal } from '../support/keys.ts';

describeOutcomes('forward-auth', async () => {
  const test = await startAskedServer({
    config: { routes: [routeTo('/**', { kind: 'all', permissions: [PERMISSION] })] },
  });
  const send = async (secret: string) =>
    (await test.send(withHeaders(ASKING.caddy({}), keyLine(secret), 'Connection: close'))).status;
  return { test, send, stop: () => test.stop() };
});

describeOutcomes('guard', async () => {
  const test = await startGuarded((_, response) => response.end('x'));
  const send = async (secret: string) =>
    (await fetch(test.url, { headers: { authorization: `Bearer ${secret}` } })).status;
  return { test, send, stop: () => test.stop() };
});

describe('the tools that a key called through a guard', () => {
  /** Calls tools of an MCP server behind a guard. @returns the used grants of the key, and its suggested tools */
  async function usedAfter(batches: readonly (readonly string[])[]) {
    const service = await startGuarded((_, response) => response.end('{}'));
    const mcp = { tools: ['*'], resources: [], prompts: [] };
    const route = { ...routeTo('/mcp', { kind: 'all', permissions: [PERMISSION] }, { mcp }), host: '*' };
    const url = await service.beside({ requirements: byRoutes(createRouter([route])) });
    const { secret, principal } = await createPrincipal(service.keys, {
      name: 'Caller of tools',
      permissions: [PERMISSION],
    });
    for (const [index, names] of batches.entries()) {
      const calls = names.map((name, id) => ({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: { name, arguments: {} },
      }));
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
      const { status } = await fetch(`${url}/mcp`, { method: 'POST', headers, body: JSON.stringify(calls) });
      assert.equal(status, 200);
      if (index % 4 === 3) await service.keys.finishActivity();
    }
    await service.keys.finishActivity();
    const { id } = principal.apiKey;
    const used = (await service.keys.port(USED_GRANTS).of([id])).get(id)!;
    await service.stop();
    return { used, tools: suggestGrants(principal.chain, used, service.keys.catalog).tools.map(({ name }) => name) };
  }

  it('are used grants, and listed by name', async () => {
    const { used, tools } = await usedAfter([['search', 'read_file']]);
    assert.deepEqual([...used.keys()], [PERMISSION, 'route:*/mcp', 'tool:read_file', 'tool:search']);
    assert.deepEqual(tools, ['read_file', 'search']);
  });

  it('are remembered up to a number, whatever names requests invent', async () => {
    const names = (batch: number) => Array.from({ length: 100 }, (_, index) => `read_${batch}_${index}`);
    const { used } = await usedAfter(Array.from({ length: 12 }, (_, batch) => names(batch)));
    assert.ok(used.size > 400 && used.size <= 1000, `${used.size}`);
  });
});
