import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { byRoutes } from '../../../src/features/guard/access.ts';
import { type Holder, KnownHolders } from '../../../src/features/guard/mcp-holders.ts';
import { OPERATOR, type Principal } from '../../../src/keys/authorization/principal.ts';
import type { Permission } from '../../../src/keys/permissions/catalog.ts';
import { createRouter, type McpPatterns, type Route } from '../../../src/features/routes/index.ts';
import { type GuardedService, startGuarded } from './support/guard.ts';
import { connectRaw } from '../../support/raw-connection.ts';
import { createPrincipal } from '../../support/keys.ts';

const READ: Permission = 'DOCKER:READ_ANY';
const DELETE: Permission = 'DOCKER:DELETE_ANY';

function part(permission: Permission, mcp: Partial<McpPatterns>, path = '/mcp'): Route {
  const patterns = { tools: [], resources: [], prompts: [], ...mcp };
  const allow = { kind: 'all', permissions: [permission] } as const;
  return { host: '*', path, allow, preflightOpen: false, mcp: patterns };
}

const ALL = { tools: ['*'], resources: ['*'], prompts: ['*'] };
const ROUTES = [
  part(READ, { tools: ['read_*'] }),
  part(DELETE, { tools: ['delete_*'] }),
  part(READ, ALL, '/all'),
  part(READ, ALL, '/other'),
];

type Answer = (message: Record<string, unknown>, outgoing: ServerResponse) => void;

describe('a guard of an MCP server that has sessions and tasks', () => {
  let service: GuardedService;
  let url: string;
  /** The bodies that the server received. */
  let got: string[];
  let answer: Answer;
  let reader: string;
  let deleter: string;
  let other: string;
  let platform: Principal;
  const requirements = byRoutes(createRouter(ROUTES));

  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const body = await text(incoming);
    got.push(body);
    answer(body === '' ? {} : JSON.parse(body), outgoing);
  };
  const create = async (name: string, permissions: Permission[], by: Principal | typeof OPERATOR = OPERATOR) =>
    createPrincipal(service.keys, { name, permissions }, by);
  before(async () => {
    service = await startGuarded((incoming, outgoing) => void respond(incoming, outgoing));
    url = await service.beside({ requirements });
    ({ secret: reader } = await create('Reader', [READ]));
    ({ secret: deleter } = await create('Deleter', [READ, DELETE]));
    ({ secret: other } = await create('Other', [READ, DELETE]));
    ({ principal: platform } = await create('Platform', [READ, DELETE, 'API_KEY:CREATE_OWN']));
  });
  after(() => service.stop());

  const json = (outgoing: ServerResponse, value: unknown, headers: Record<string, string> = {}) =>
    outgoing.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
  const events = (outgoing: ServerResponse, value: unknown) =>
    outgoing
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(`event: message\ndata: ${JSON.stringify(value)}\n\n`);
  const result = ({ id }: Record<string, unknown>, of: object) => ({ jsonrpc: '2.0', id, result: of });
  const flat = (taskId: string) => ({ resultType: 'task', taskId, status: 'working', ttlMs: 1000 });
  const nested = (taskId: string) => ({ task: { taskId, status: 'working', ttl: 1000 } });
  beforeEach(() => {
    got = [];
    answer = (message, outgoing) => json(outgoing, result(message, { content: [] }));
  });

  const post = async (secret: string, body: unknown, headers: Record<string, string> = {}, path = '/mcp', at = url) => {
    const reply = await fetch(`${at}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: reply.status, challenge: reply.headers.get('www-authenticate'), body: await reply.text() };
  };
  const call = (method: string, params: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
  const tool = (name: string, id: unknown = 1) => call('tools/call', { name, arguments: {} }, id);
  const onTask = (taskId: string) => [
    ...['tasks/get', 'tasks/result', 'tasks/cancel'].map((method) => call(method, { taskId })),
    call('tasks/update', { taskId, inputResponses: { name: { action: 'accept' } } }),
    call('subscriptions/listen', { notifications: { taskIds: [taskId] } }),
  ];
  const statusesOf = async (secret: string, taskId: string, path?: string, at?: string) =>
    Promise.all(onTask(taskId).map(async (message) => (await post(secret, message, {}, path, at)).status));
  const ALLOWED = Array.from({ length: 5 }, () => 200);
  const REFUSED = Array.from({ length: 5 }, () => 403);
  const begin = async (secret: string, taskId: string, toolName = 'delete_all', path = '/mcp') => {
    const before = answer;
    answer = (message, outgoing) => json(outgoing, result(message, flat(taskId)));
    assert.equal((await post(secret, tool(toolName), {}, path)).status, 200);
    [answer, got] = [before, []];
  };

  for (const [what, reply] of Object.entries({
    'in JSON': (taskId) => (message, outgoing) => json(outgoing, result(message, flat(taskId))),
    'in JSON of the former revision': (taskId) => (message, outgoing) =>
      json(outgoing, result(message, nested(taskId))),
    'in an event stream': (taskId) => (message, outgoing) => events(outgoing, result(message, flat(taskId))),
  } as Record<string, (taskId: string) => Answer>))
    for (const path of ['/mcp', '/all'])
      it(`lets only the key go on with a task that has begun it, ${what}, at ${path}`, async () => {
        const taskId = `${what}${path}`;
        answer = reply(taskId);
        assert.equal((await post(deleter, tool('delete_all'), {}, path)).status, 200);
        answer = (message, outgoing) => json(outgoing, result(message, { resultType: 'complete', taskId }));
        assert.deepEqual(await statusesOf(deleter, taskId, path), ALLOWED);
        got = [];
        for (const secret of [reader, other]) assert.deepEqual(await statusesOf(secret, taskId, path), REFUSED);
        assert.deepEqual(got, []);
        // An answer about it to another key does not change the holder.
        assert.deepEqual(await statusesOf(deleter, taskId, path), ALLOWED);
      });

  it('answers alike for a task of another key and one that is not there', async () => {
    await begin(deleter, 'theirs');
    const [one, two] = [
      await post(reader, call('tasks/get', { taskId: 'theirs' })),
      await post(reader, call('tasks/get', { taskId: 'nowhere' })),
    ];
    assert.deepEqual([one.status, one.body], [two.status, two.body]);
    assert.equal(JSON.parse(one.body).error.code, -32_003);
  });

  it("distinguishes the calls of a batch, and refuses a batch with a message about another key's task", async () => {
    answer = (_, outgoing) =>
      json(outgoing, [result({ id: 2 }, flat('of-delete')), result({ id: 1 }, flat('of-read')), { odd: true }]);
    assert.equal((await post(deleter, [tool('read_a', 1), tool('delete_a', 2)])).status, 200);
    answer = (message, outgoing) => json(outgoing, result(message, {}));
    assert.deepEqual(await statusesOf(deleter, 'of-delete'), ALLOWED);
    assert.deepEqual(await statusesOf(deleter, 'of-read'), ALLOWED);
    got = [];
    const batch = [tool('read_a', 1), call('tasks/cancel', { taskId: 'of-read' }, 2)];
    assert.equal((await post(reader, batch)).status, 403);
    assert.deepEqual(got, []);
    assert.equal((await post(deleter, batch)).status, 200);
  });

  it('lets another key of the same owner go on with a task only if it may call its tool', async () => {
    const { secret: first } = await create('First agent', [READ, DELETE], platform);
    const { secret: second } = await create('Second agent', [READ, DELETE], platform);
    const { secret: narrow } = await create('Narrow agent', [READ], platform);
    await begin(first, 'shared');
    assert.deepEqual(await statusesOf(second, 'shared'), ALLOWED);
    const { status, challenge } = await post(narrow, call('tasks/cancel', { taskId: 'shared' }));
    assert.equal(status, 403);
    assert.match(challenge!, /scope="DOCKER:DELETE_ANY"/);
    assert.deepEqual(await statusesOf(deleter, 'shared'), REFUSED);
  });

  it('checks again whether a key may call the tool of its task', async () => {
    const { secret, principal } = await create('Losing', [READ, DELETE]);
    await begin(secret, 'lost');
    await service.keys.update(principal.apiKey.id, { permissions: [READ] }, OPERATOR);
    assert.deepEqual(await statusesOf(secret, 'lost'), REFUSED);
  });

  it('knows a key by its id: rotated it goes on, overwritten it does not', async () => {
    const { secret, principal } = await create('Turned', [READ, DELETE]);
    await begin(secret, 'turned');
    const { key: rotated } = await service.keys.rotate(principal.apiKey.id, {}, OPERATOR);
    assert.deepEqual(await statusesOf(rotated, 'turned'), ALLOWED);
    await service.keys.delete([principal.apiKey.id], OPERATOR);
    const { secret: overwritten } = await create('Turned', [READ, DELETE]);
    assert.deepEqual(await statusesOf(overwritten, 'turned'), REFUSED);
  });

  it('refuses tasks that it does not know, such as after a restart, at another path, and lists of all', async () => {
    await begin(deleter, 'here');
    const restarted = await service.beside({ requirements });
    assert.deepEqual(await statusesOf(deleter, 'here', '/mcp', restarted), REFUSED);
    await begin(reader, 'here', 'any', '/other');
    assert.deepEqual(await statusesOf(reader, 'here', '/all'), REFUSED);
    for (const method of ['tasks/list', 'tasks/vendor'])
      assert.equal((await post(reader, call(method, {}), {}, '/all')).status, 403);
    for (const notifications of [{ taskIds: [7] }, { taskIds: 'here' }])
      assert.equal((await post(reader, call('subscriptions/listen', { notifications }), {}, '/all')).status, 400);
    assert.equal((await post(reader, call('tasks/get', { taskId: 7 }), {}, '/all')).status, 400);
    assert.equal((await post(reader, call('tasks/get', { taskId: 'a', TaskId: 'b' }), {}, '/all')).status, 400);
    assert.deepEqual(got, []);
  });

  it('passes answers to calls on unchanged, however long they are', async () => {
    const long = result({ id: 1 }, { content: [{ type: 'text', text: 'x'.repeat(200_000) }], taskId: 'a' });
    for (const path of ['/mcp', '/all']) {
      answer = (_, outgoing) => json(outgoing, long);
      assert.equal((await post(deleter, tool('delete_a'), {}, path)).body, JSON.stringify(long));
      answer = (_, outgoing) => events(outgoing, long);
      assert.equal(
        (await post(deleter, tool('delete_a'), {}, path)).body,
        `event: message\ndata: ${JSON.stringify(long)}\n\n`,
      );
      answer = (_, outgoing) =>
        outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{"taskId" no JSON');
      assert.equal((await post(deleter, tool('delete_a'), {}, path)).body, '{"taskId" no JSON');
    }
  });

  describe('keeps a session for the key that has begun it', () => {
    const initialize = call('initialize', { protocolVersion: '2025-11-25' });
    const open = async (secret: string, session: string, path?: string) => {
      answer = (message, outgoing) => json(outgoing, result(message, {}), { 'Mcp-Session-Id': session });
      assert.equal((await post(secret, initialize, {}, path)).status, 200);
      got = [];
    };
    const statuses = async (secret: string, session: string, path = '/mcp', at = url) => {
      const headers = { authorization: `Bearer ${secret}`, 'mcp-session-id': session };
      const by = async (method: string) => (await fetch(`${at}${path}`, { method, headers })).status;
      const posted = await post(secret, call('ping', {}), { 'mcp-session-id': session }, path, at);
      return [posted.status, await by('GET'), await by('DELETE')];
    };

    for (const path of ['/mcp', '/all'])
      it(`at ${path}`, async () => {
        await open(deleter, 's1', path);
        assert.deepEqual(await statuses(deleter, 's1', path), [200, 200, 200]);
        got = [];
        for (const secret of [reader, other]) assert.deepEqual(await statuses(secret, 's1', path), [404, 404, 404]);
        const { body } = await post(reader, call('ping', {}), { Mcp_Session_Id: 's1' }, path);
        assert.equal(JSON.parse(body).error.code, -32_001);
        assert.deepEqual(got, []);
      });

    it('and refuses one that it does not know, so that the client begins a new one', async () => {
      await open(deleter, 's2');
      const restarted = await service.beside({ requirements });
      assert.deepEqual(await statuses(deleter, 's2', '/mcp', restarted), [404, 404, 404]);
      assert.deepEqual(await statuses(deleter, 'none'), [404, 404, 404]);
      assert.deepEqual(got, []);
    });

    it('and refuses several', async () => {
      await open(deleter, 's3');
      const raw = connectRaw(url);
      const ids = ['Mcp-Session-Id: s3', 'Mcp-Session-Id: s3'];
      raw.request('GET /mcp HTTP/1.1', 'Host: a', `Authorization: Bearer ${deleter}`, ...ids);
      await raw.receives('HTTP/1.1 400 ');
      assert.deepEqual(got, []);
    });

    it('or for one of the same owner that has all its permissions, such as one that replaces it', async () => {
      const { secret: first } = await create('Old login', [READ], platform);
      await open(first, 's4');
      const { secret: wider } = await create('New login', [READ, DELETE], platform);
      assert.deepEqual(await statuses(wider, 's4'), [200, 200, 200]);
      await open(wider, 's5');
      assert.deepEqual(await statuses(first, 's5'), [404, 404, 404]);
    });
  });
});

describe('the memory of holders', () => {
  const of = (keyId: string): Holder => ({ keyId, owner: keyId });

  it('is bounded for each key, and in total: the least recently used is forgotten', async () => {
    const known = new KnownHolders(6, 3);
    const kept = async (...ids: string[]) => (await known.find(ids)).map((holder) => holder?.keyId);
    for (const id of ['a1', 'a2', 'a3']) known.note(id, of('a'));
    await known.find(['a1']);
    known.note('a4', of('a'));
    assert.deepEqual(await kept('a1', 'a2', 'a3', 'a4'), ['a', undefined, 'a', 'a']);
    for (const id of ['b1', 'c1', 'd1', 'e1']) known.note(id, of(id[0]!));
    assert.deepEqual(await kept('a1', 'a3', 'a4', 'b1', 'e1'), [undefined, 'a', 'a', 'b', 'e']);
    known.note('a3', of('z'));
    assert.deepEqual(await kept('a3'), ['z']);
  });

  it('has no tools with long names', async () => {
    const known = new KnownHolders();
    known.note('t', { ...of('a'), tool: 'x'.repeat(128) });
    known.note('u', { ...of('a'), tool: 'x'.repeat(129) });
    assert.deepEqual(
      (await known.find(['t', 'u'])).map((holder) => holder?.keyId),
      ['a', undefined],
    );
  });
});
