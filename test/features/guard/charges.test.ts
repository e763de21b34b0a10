import assert from 'node:assert/strict';
import { byRoutes } from '../../../src/features/guard/access.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { Limit } from '../../../src/keys/basics/limit.ts';
import { createRouter, type Route } from '../../../src/features/routes/index.ts';
import { ASKING, keyLine, routeTo, startAskedServer, withHeaders } from './support/forward-auth.ts';
import { type GuardedService, startGuarded } from './support/guard.ts';
import { createPrincipal } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';

const any = (path: string, more: Partial<Route> = {}): Route => {
  return { host: '*', path, allow: { kind: 'key' }, preflightOpen: false, ...more };
};
const parts = (tools: readonly string[]) => ({ mcp: { tools, resources: [], prompts: [] } });

const ROUTES = [
  any('/**'),
  any('/reports/**', { cost: 5 }),
  any('/search', { limit: '2/m', cost: 1 }),
  any('/both', { limit: '3/h', cost: 2 }),
  any('/mcp', parts(['read_*'])),
  any('/mcp', { ...parts(['run_*']), cost: 3, limit: '6/h' }),
];

describe('the cost of a request, by its route', () => {
  let service: GuardedService;
  let url: string;
  let passed: number;
  let count = 0;
  const { log, lines } = collectingLog();
  before(async () => {
    service = await startGuarded((incoming, outgoing) => {
      passed += 1;
      incoming.resume().once('end', () => outgoing.setHeader('content-type', 'application/json').end('{}'));
    });
    url = await service.beside({ requirements: byRoutes(createRouter(ROUTES)), log });
  });
  after(() => service.stop());
  beforeEach(() => {
    passed = 0;
  });

  const create = (limits: readonly Limit[], caller?: Parameters<typeof createPrincipal>[2]) => {
    count += 1;
    return createPrincipal(service.keys, { name: `Key ${count}`, roles: ['ADMIN'], limits: [...limits] }, caller);
  };
  const send = async (secret: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const reply = await fetch(url + path, {
      headers,
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    });
    const { errors = [] } = (await reply.json()) as { errors?: { message: string; extensions: { code: string } }[] };
    const [{ message, extensions } = {}] = errors as Partial<(typeof errors)[number]>[];
    const code = extensions?.code;
    const fields = ['ratelimit', 'retry-after'].map((name) => reply.headers.get(name));
    return { status: reply.status, code, message, fields };
  };
  const left = async ({ principal: { apiKey } }: Awaited<ReturnType<typeof create>>) =>
    (await service.keys.budgetsOf([(await service.keys.findById(apiKey.id, OPERATOR))!]))
      .get(apiKey.id)!
      .map((each) => each.left);
  const usesOf = async ({ principal: { apiKey } }: Awaited<ReturnType<typeof create>>) => {
    await service.keys.finishActivity();
    return (await service.keys.useOf([apiKey.id])).get(apiKey.id)!.uses;
  };
  const call = (tool: string) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool } });
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

  it('is its cost against limits and budget, and one as a use', async () => {
    const key = await create(['12/budget', '10/uses', '11/h']);
    assert.deepEqual((await send(key.secret, '/reports/1')).fields, [
      '"hour";r=6;t=328, "budget";r=7, "uses";r=9',
      null,
    ]);
    assert.equal((await send(key.secret, '/other')).status, 200);
    assert.equal((await send(key.secret, '/reports/2')).status, 200);
    const refused = await send(key.secret, '/reports/3');
    assert.deepEqual([refused.status, refused.code, passed], [429, 'BUDGET_SPENT', 3]);
    assert.equal(
      refused.message,
      'The budget of 12 is spent. The request counts as 5, and 1 is left. Waiting does not help.',
    );
    assert.deepEqual(await left(key), [1, 7], 'what is refused counts against nothing');
  });

  it('is never within a limit that allows less', async () => {
    const refused = await send((await create(['3/m'])).secret, '/reports/1');
    assert.deepEqual(
      [refused.code, refused.message, refused.fields[1]],
      ['RATE_LIMITED', 'The request counts as 5, more than the limit of 3/m.', null],
    );
  });

  it('is one against the limit of that route, which each key has for itself', async () => {
    const [one, other] = [await create([]), await create(['100/h'])];
    assert.deepEqual((await send(one.secret, '/search')).fields, ['"minute";r=1;t=30', null]);
    assert.equal((await send(one.secret, '/search')).status, 200);
    const refused = await send(one.secret, '/search');
    assert.deepEqual([refused.status, refused.code, refused.fields[1]], [429, 'RATE_LIMITED', '30']);
    assert.equal((await send(one.secret, '/elsewhere')).status, 200);
    assert.deepEqual((await send(other.secret, '/search')).fields, ['"hour";r=99;t=36, "minute";r=1;t=30', null]);
    assert.equal((await send(other.secret, '/both')).fields[0], '"hour";r=1;t=1200', 'that of the route is closer');
    assert.equal((await send(other.secret, '/both')).code, 'RATE_LIMITED');
  });

  it('is also one of its parent keys against the limit of the route', async () => {
    const parent = await create([]);
    const child = await create([], parent.principal);
    for (const { secret } of [child, parent]) assert.equal((await send(secret, '/search')).status, 200);
    for (const { secret } of [child, parent]) assert.equal((await send(secret, '/search')).status, 429);
  });

  it('is the sum of its tool calls, and one if there are none', async () => {
    const key = await create(['20/budget', '20/uses']);
    const before = await usesOf(key);
    assert.deepEqual((await send(key.secret, '/mcp', list)).fields, ['"budget";r=19, "uses";r=19', null]);
    assert.deepEqual(await left(key), [19, 19]);
    assert.equal((await send(key.secret, '/mcp', [call('read_a'), call('read_b'), list])).status, 200);
    assert.deepEqual(await left(key), [17, 17]);
    assert.equal((await send(key.secret, '/mcp', [call('read_a'), call('run_a')])).status, 200);
    assert.deepEqual(await left(key), [13, 15]);
    assert.equal((await send(key.secret, '/mcp', call('run_a'))).status, 200);
    const refused = await send(key.secret, '/mcp', call('run_b'));
    assert.deepEqual(
      [refused.status, refused.code, refused.fields[0]],
      [429, 'RATE_LIMITED', '"budget";r=10, "uses";r=14, "hour";r=0;t=600'],
    );
    assert.deepEqual(await left(key), [10, 14]);
    assert.equal((await usesOf(key)) - before, 4, 'what is limited is no use');
    assert.equal(passed, 4, 'what is refused never reaches the server');
  });

  it('is one of a message that is refused, and nothing of a batch that is not within a budget', async () => {
    const key = await create(['3/budget']);
    assert.equal((await send(key.secret, '/mcp', call('other'))).status, 403);
    assert.equal((await send(key.secret, '/mcp', 'nonsense')).status, 400);
    assert.deepEqual(await left(key), [1]);
    const refused = await send(key.secret, '/mcp', [call('read_a'), call('read_b')]);
    assert.deepEqual([refused.code, await left(key)], ['BUDGET_SPENT', [1]]);
    assert.equal((await send(key.secret, '/mcp', call('read_a'))).status, 200);
    assert.equal((await send(key.secret, '/mcp', list)).code, 'BUDGET_SPENT');
    assert.equal(passed, 1);
    assert.ok(lines.some(({ fields }) => (fields as { reason?: string }).reason === 'limited'));
  });

  it('is the same where proxies ask', async () => {
    const server = await startAskedServer({
      config: {
        routes: [routeTo('/reports/**', { kind: 'key' }, { cost: 5, limit: '5/h' }), routeTo('/**', { kind: 'key' })],
      },
    });
    const { key } = await server.keys.create({ name: 'Asked', roles: ['GUEST'], limits: ['7/budget'] }, OPERATOR);
    const ask = async (target: string) => {
      const { status, body } = await server.send(withHeaders(ASKING.caddy({ target }), keyLine(key)));
      return `${status} ${/"code":"(\w+)"/.exec(body)?.[1] ?? ''}`;
    };
    assert.deepEqual(
      [await ask('/reports/1'), await ask('/reports/2'), await ask('/a'), await ask('/a'), await ask('/a')],
      ['200 ', '429 BUDGET_SPENT', '200 ', '200 ', '429 BUDGET_SPENT'],
    );
    await server.stop();
  });
});
