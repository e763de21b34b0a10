import assert from 'node:assert/strict';
import { byRoutes } from '../../src/features/guard/access.ts';
import { createRouter } from '../../src/features/routes/index.ts';
import { USED_GRANTS } from '../../src/features/usage/suggest.ts';
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

describe('the used grants of a key', () => {
  it('include a limited number of tools, whatever names requests invent', async () => {
    const service = await startGuarded((_, response) => response.end('{}'));
    const mcp = { tools: ['*'], resources: [], prompts: [] };
    const route = { ...routeTo('/mcp', { kind: 'all', permissions: [PERMISSION] }, { mcp }), host: '*' };
    const url = await service.beside({ requirements: byRoutes(createRouter([route])) });
    const { secret, principal } = await createPrincipal(service.keys, { name: 'Many', permissions: [PERMISSION] });
    for (let batch = 0; batch < 12; batch += 1) {
      const calls = Array.from({ length: 100 }, (_, index) => ({
        jsonrpc: '2.0',
        id: index,
        method: 'tools/call',
        params: { name: `read_${batch}_${index}`, arguments: {} },
      }));
      const { status } = await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(calls),
      });
      assert.equal(status, 200);
      if (batch % 4 === 3) await service.keys.finishActivity();
    }
    const { id } = principal.apiKey;
    const used = (await service.keys.port(USED_GRANTS).of([id])).get(id)!;
    assert.ok(used.size > 400 && used.size <= 1000, `${used.size}`);
    await service.stop();
  });
});
