import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { byRoutes } from '../../../src/features/guard/access.ts';
import type { Permission } from '../../../src/keys/permissions/catalog.ts';
import { PermissionSet } from '../../../src/keys/permissions/permission-set.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createRouter, type McpPatterns, type Route } from '../../../src/features/routes/index.ts';
import { type GuardedService, startGuarded } from './support/guard.ts';
import { connectRaw } from '../../support/raw-connection.ts';
import { createPrincipal } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { until } from '../../support/until.ts';

const READ: Permission = 'DOCKER:READ_ANY';
const DELETE: Permission = 'DOCKER:DELETE_ANY';

function part(permission: Permission | 'key', mcp: Partial<McpPatterns>): Route {
  return {
    host: '*',
    path: '/mcp',
    allow: permission === 'key' ? { kind: 'key' } : { kind: 'all', permissions: [permission] },
    preflightOpen: false,
    mcp: { tools: [], resources: [], prompts: [], ...mcp },
  };
}

const ROUTES = [
  part(READ, { tools: ['read_*', 'search'], resources: ['file:///docs/*'], prompts: ['*'] }),
  part(DELETE, { tools: ['delete_*', 'read_secret'] }),
];

describe('a guard of an MCP server', () => {
  let service: GuardedService;
  let url: string;
  /** The bodies that the server received. */
  let got: string[];
  let answer: (message: Record<string, unknown>, outgoing: ServerResponse) => void;
  let reader: string;
  let deleter: string;
  let stranger: string;
  const { log, lines } = collectingLog();

  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const body = await text(incoming);
    got.push(body);
    answer(body === '' ? {} : JSON.parse(body), outgoing);
  };
  before(async () => {
    service = await startGuarded((incoming, outgoing) => void respond(incoming, outgoing));
    url = `${await service.beside({ requirements: byRoutes(createRouter(ROUTES)), log })}/mcp`;
    const create = async (name: string, permissions: Permission[]) =>
      (await createPrincipal(service.keys, { name, permissions })).secret;
    reader = await create('Reader', [READ]);
    deleter = await create('Deleter', [READ, DELETE]);
    stranger = await create('Stranger', ['VMS:READ_ANY']);
  });
  after(() => service.stop());
  beforeEach(() => {
    [got, lines.length] = [[], 0];
    answer = (message, outgoing) => {
      outgoing.setHeader('content-type', 'application/json');
      outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'] ?? null, result: { content: [] } }));
    };
  });

  const post = async (secret: string, body: unknown, headers: Record<string, string> = {}) => {
    const reply = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: reply.status, challenge: reply.headers.get('www-authenticate'), body: await reply.text() };
  };
  const call = (method: string, params?: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
  const tool = (name: unknown, id?: unknown) => call('tools/call', { name, arguments: {} }, id);

  it('lets the tools, resources and prompts pass that a key may use', async () => {
    for (const message of [
      call('initialize', { protocolVersion: '2025-11-25' }),
      call('server/discover'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 7, result: { roots: [] } },
      tool('read_file'),
      tool('search'),
      call('resources/read', { uri: 'file:///docs/a/b.md' }),
      call('prompts/get', { name: 'anything' }),
      call('completion/complete', { ref: { type: 'ref/prompt', name: 'anything' } }),
      call('completion/complete', { ref: { type: 'ref/resource', uri: 'file:///docs/{name}' } }),
      call('subscriptions/listen', { notifications: { resourceSubscriptions: ['file:///docs/a'] } }),
    ]) {
      got = [];
      assert.equal((await post(reader, message)).status, 200, JSON.stringify(message));
      assert.deepEqual(got, [JSON.stringify(message)]);
    }
  });

  it('refuses others with the scope that is missing, and they never reach the server', async () => {
    for (const [message, detail] of [
      [tool('delete_file', 'a'), 'tools/call delete_file'],
      // The longer pattern decides, wherever it is.
      [tool('read_secret', 'a'), 'tools/call read_secret'],
    ] as const) {
      const { status, challenge, body } = await post(reader, message);
      assert.equal(status, 403);
      assert.match(challenge!, /error="insufficient_scope", .*scope="DOCKER:DELETE_ANY"/);
      assert.deepEqual(JSON.parse(body), {
        jsonrpc: '2.0',
        id: 'a',
        error: { code: -32003, message: `${detail} needs ${DELETE}.`, data: { scope: DELETE } },
      });
      assert.equal((await post(deleter, message)).status, 200);
    }
    assert.equal(got.length, 2, 'by the other key alone');
    const noted = lines.flatMap(({ fields }) =>
      (fields as { reason?: string; detail?: string }).reason === 'mcp' ? [fields] : [],
    );
    assert.match((noted[0] as { detail: string }).detail, /^tools\/call delete_file: POST /);
  });

  it('notes which tools a key has called and which it was refused, but never with what', async () => {
    const { secret, principal } = await createPrincipal(service.keys, { name: 'Noted', permissions: [READ] });
    await post(secret, [tool('search', 1), tool('read_file', 2), call('prompts/get', { name: 'hunter2' })]);
    await post(secret, call('tools/call', { name: 'delete_file', arguments: { path: 'hunter2' } }));
    await service.keys.finishActivity();
    const used = service.usedGrants.of(principal.apiKey.id);
    assert.deepEqual(used, [READ, 'route:*/mcp', 'tool:read_file', 'tool:search']);
    const log = await service.keys.audit.read({ actor: 'Noted' }, OPERATOR);
    const refusals = log.filter(({ action }) => action === 'REFUSE');
    assert.deepEqual(
      refusals.map(({ after }) => after),
      [{ reason: 'forbidden', count: 1, missing: [DELETE], tool: 'delete_file' }],
    );
    assert.ok(!JSON.stringify([log, lines]).includes('hunter2'));
  });

  it('refuses requests without a route to everyone, and unknown ones to all but holders of everything', async () => {
    for (const message of [
      tool('other'),
      tool('READ_file'),
      call('resources/read', { uri: 'file:///etc/passwd' }),
      call('resources/read', { uri: 'file:///docs/../etc/passwd' }),
      call('resources/read', { uri: 'file:///docs/%2e%2E/etc/passwd' }),
      call('resources/subscribe', { uri: 'file:///etc/passwd' }),
      call('completion/complete', { ref: { type: 'ref/resource', uri: 'file:///etc/{name}' } }),
      call('subscriptions/listen', { notifications: { resourceSubscriptions: ['file:///etc/passwd'] } }),
      call('tasks/list'),
      call('vendor/do'),
      { jsonrpc: '2.0', method: 'tools/call', params: { name: 'other' } },
    ]) {
      const { status, body } = await post(deleter, message);
      assert.deepEqual([status, got], [403, []], JSON.stringify(message));
      assert.equal(JSON.parse(body).error.code, -32_003);
    }
    const all = { tools: ['*'], resources: ['*'], prompts: ['*'] };
    const open = await service.beside({ requirements: byRoutes(createRouter([part(READ, all)])) });
    const headers = { authorization: `Bearer ${reader}`, 'content-type': 'application/json' };
    for (const message of [call('vendor/do'), call('tools/call')]) {
      const body = JSON.stringify(message);
      assert.equal((await fetch(`${open}/mcp`, { method: 'POST', headers, body })).status, 200);
    }
  });

  describe('judges a resource in each way that servers read its URI', () => {
    /** The answer of a guard with these routes to a key that reads a resource. */
    const reading = async (...routes: Route[]) => {
      const address = `${await service.beside({ requirements: byRoutes(createRouter(routes)) })}/mcp`;
      return async (uri: string, secret = reader) => {
        const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
        const body = JSON.stringify(call('resources/read', { uri }));
        return (await fetch(address, { method: 'POST', headers, body })).status;
      };
    };

    it('however it is written', async () => {
      const statusOf = await reading(
        part(READ, { resources: ['file:///docs/*', 'file:///notes/a%20b*', 'notes://*'] }),
        part(DELETE, { resources: ['notes://private/*', 'file:///notes/x'] }),
      );
      for (const uri of [
        'file:///docs/a b.md',
        'file:///docs/%C3%A4%20b',
        'file:///docs/ä',
        'file:///docs/{name}',
        'file:///notes/a%20bc',
      ])
        assert.equal(await statusOf(uri), 200, uri);
      for (const uri of [
        'file:///docs/.\t./etc/passwd',
        'file:///docs/.\n./etc/passwd',
        'file:///docs/..%2fetc/passwd',
        'file:///docs/..%5Cetc/passwd',
        'file:///docs/..\\etc/passwd',
        'file:///docs/%252e%252e/etc/passwd',
        'file:///docs/a%00.md',
        'file:///docs/%2e%ff/../etc',
        'notes://priv\tate/x',
        'notes://\tprivate/x',
        'notes://%70rivate/x',
        'notes://private/x',
        'notes://a/../private/x',
      ])
        assert.equal(await statusOf(uri), 403, JSON.stringify(uri));
      assert.equal(await statusOf('notes://%70rivate/x', deleter), 200);
    });

    it('however the pattern is written', async () => {
      const patterns = [
        'file://localhost/d/*',
        'file:/e/*',
        'GitHub://repo/*',
        'https://Example.com:443/*',
        'file:///C:\\d\\*',
      ];
      const statusOf = await reading(part(READ, { resources: patterns }));
      for (const pattern of patterns) assert.equal(await statusOf(pattern.replace('*', 'a.md')), 200, pattern);
    });

    it('where another pattern is for all', async () => {
      const resources = ['file:///secret/*', 'GitHub://secret/*', 'https://secret.example', 'config://a/secret'];
      const statusOf = await reading(part(READ, { resources: ['*'] }), part(DELETE, { resources }));
      for (const [uri, status] of [
        ['file:///a/../secret/x', 403],
        ['file:///sec\tret/x', 403],
        ['file:///%73ecret/x', 403],
        ['file:////secret/x', 403],
        ['file:///a//secret/x', 200],
        ['github://secret/x', 403],
        ['https://secret.example/', 403],
        ['config://a/secret?', 403],
        ['config://a/secret#x', 403],
        ['config://a/other?secret', 200],
      ] as const)
        assert.deepEqual([await statusOf(uri), await statusOf(uri, deleter)], [status, 200], uri);
    });
  });

  it('passes a preflight on that its routes let pass, and nothing else without a key', async () => {
    const open = createRouter([{ ...part(READ, { tools: ['*'] }), preflightOpen: true }]);
    const address = `${await service.beside({ requirements: byRoutes(open) })}/mcp`;
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' };
    assert.equal((await fetch(address, { method: 'OPTIONS', headers })).status, 200);
    assert.deepEqual(got, ['']);
    assert.equal((await fetch(address, { method: 'OPTIONS', headers: { origin: 'https://app.example' } })).status, 401);
    assert.equal((await fetch(address, { method: 'POST', headers, body: JSON.stringify(tool('a')) })).status, 401);
  });

  it('refuses keys without any permission here', async () => {
    const { status, challenge } = await post(stranger, call('initialize'));
    assert.deepEqual([status, got], [403, []]);
    assert.match(challenge!, /scope="DOCKER:READ_ANY DOCKER:DELETE_ANY"/);
    assert.equal((await post('none', call('initialize'))).status, 401);
  });

  it('refuses a whole batch if one message is refused, and answers each', async () => {
    const batch = [tool('read_a', 1), { jsonrpc: '2.0', method: 'notifications/cancelled' }, tool('delete_a', 2)];
    const { status, body } = await post(reader, batch);
    assert.deepEqual([status, got], [403, []]);
    assert.deepEqual(
      JSON.parse(body).map(({ id }: { id: unknown }) => id),
      [1, null, 2],
    );
    assert.equal((await post(deleter, batch)).status, 200);
    assert.deepEqual(got, [JSON.stringify(batch)]);
  });

  it('passes on what it has judged, byte by byte', async () => {
    const params =
      '{ "name":"read\\u005fa", "arguments": {"Name":":","n":12345678901234567890.10,"__proto__":{"a":"}\\\\"}} }';
    const message = `{"jsonrpc": "2.0","id":1e2,"method":"tools/call","params": ${params}}`;
    assert.equal((await post(reader, message)).status, 200);
    assert.deepEqual(got, [message]);
  });

  it('refuses messages that a server could read differently: with repeated or misspelled fields', async () => {
    const start = '"jsonrpc":"2.0","id":1,"method":"tools/call"';
    for (const body of [
      `{${start},"params":{"name":"delete_a","name":"read_a"}}`,
      `{${start},"params":{"name":"read_a","name":"delete_a"}}`,
      `{${start},"method":"tools/list","params":{"name":"read_a"}}`,
      `{${start},"params":{"name":"read_a","arguments":{"a":1,"a":1}}}`,
      `{${start},"params":{"name":"read_a","Name":"delete_a"}}`,
      `{${start},"Method":"tools/list","params":{"name":"read_a"}}`,
      `{${start},"params":{"name":"read_a"},"param\u017f":{"name":"delete_a"}}`,
      `[{${start},"params":{"name":"read_a"}},{${start},"params":{"name":"read_a"},"PARAMS":{"name":"delete_a"}}]`,
      '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a","TYPE":"x"}}}',
    ])
      assert.deepEqual([(await post(reader, body)).status, got], [400, []], body);
    assert.equal(
      (await post(reader, '{"jsonrpc":"2.0","id":1,"method":"tools\\u002fcall","params":{"name":"delete_a"}}')).status,
      403,
    );
  });

  it('takes patterns with several stars, in time linear in the length of a name', async () => {
    const parts = { tools: ['a*b*c', '*x*'], resources: [], prompts: [] };
    const several = `${await service.beside({ requirements: byRoutes(createRouter([part(READ, parts)])) })}/mcp`;
    const statusOf = async (name: string) => {
      const headers = { authorization: `Bearer ${reader}`, 'content-type': 'application/json' };
      return (await fetch(several, { method: 'POST', headers, body: JSON.stringify(tool(name)) })).status;
    };
    for (const name of ['abc', 'a-b-b-c', 'x', '-x-']) assert.equal(await statusOf(name), 200, name);
    for (const name of ['ab', 'acb', 'bc', '', 'ABC', 'a'.repeat(2048)]) assert.equal(await statusOf(name), 403, name);
  });

  describe('refuses what would keep all others waiting', () => {
    const listen = (uris: readonly string[]) =>
      call('subscriptions/listen', { notifications: { resourceSubscriptions: uris } });
    const uris = (count: number, length = 40) =>
      Array.from({ length: count }, (_, index) => `file:///docs/${index}`.padEnd(length, 'x'));
    const refused = async (secret: string, body: unknown, status: number, code: number) => {
      const reply = await post(secret, body);
      const answered = JSON.parse(reply.body) as { error: object } | { error: object }[];
      const { error } = (Array.isArray(answered) ? answered[0] : answered) as { error: { code: number } };
      assert.deepEqual([reply.status, error.code, got], [status, code, []]);
    };

    it('more names than a request may have, in one message or in many', async () => {
      assert.equal((await post(reader, listen(uris(1000)))).status, 200);
      got = [];
      await refused(reader, listen(uris(1001)), 400, -32_602);
      const many = Array.from({ length: 55 }, () => listen(uris(100)));
      await refused(reader, many, 400, -32_602);
      await refused(reader, [tool('read_a', 1), ...Array.from({ length: 10 }, () => listen(uris(100)))], 400, -32_602);
    });

    it('a name or URI that is too long', async () => {
      await refused(reader, call('resources/read', { uri: `file:///docs/${'%41'.repeat(300_000)}` }), 400, -32_602);
      await refused(reader, tool(`read_${'a'.repeat(2044)}`), 400, -32_602);
      assert.equal((await post(reader, tool(`read_${'a'.repeat(2043)}`))).status, 200);
    });

    it('more names than go with the patterns of the routes, also of a key that may use everything', async () => {
      const resources = Array.from({ length: 1000 }, (_, index) => `file:///${index}*`);
      const parts = { tools: ['*'], resources: ['*', ...resources], prompts: ['*'] };
      const wide = `${await service.beside({ requirements: byRoutes(createRouter([part(READ, parts)])) })}/mcp`;
      const statusOf = async (body: object) => {
        const headers = { authorization: `Bearer ${reader}`, 'content-type': 'application/json' };
        return (await fetch(wide, { method: 'POST', headers, body: JSON.stringify(body) })).status;
      };
      assert.equal(await statusOf(listen(uris(30))), 200);
      assert.equal(await statusOf(listen(uris(40))), 400);
      assert.equal(await statusOf(listen(uris(1, 2048))), 200);
    });

    it('more fields or values than are read', async () => {
      const fields = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
      assert.equal((await post(reader, call('ping', fields(19_990)))).status, 200);
      got = [];
      await refused(reader, call('ping', fields(20_000)), 400, -32_600);
      await refused(reader, call('ping', { list: Array.from({ length: 100_000 }, () => 1) }), 400, -32_600);
    });
  });

  it('judges open streams again only when the key or the routes have changed', async () => {
    answer = (_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n');
    };
    const { secret } = await createPrincipal(service.keys, { name: 'Listening', permissions: [READ] });
    const uris = Array.from({ length: 500 }, (_, index) => `file:///docs/${index}`);
    const body = JSON.stringify(call('subscriptions/listen', { notifications: { resourceSubscriptions: uris } }));
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const stream = (await fetch(url, { method: 'POST', headers, body })).body!.getReader();
    await stream.read();
    const real = Object.getOwnPropertyDescriptor(PermissionSet.prototype, 'has')!;
    let asked = 0;
    const counting = function counting(this: PermissionSet, ...permission: unknown[]) {
      asked += 1;
      return (real.value as (...given: unknown[]) => boolean).apply(this, permission);
    };
    Object.defineProperty(PermissionSet.prototype, 'has', { ...real, value: counting });
    try {
      // The routes are checked once for each request that lists parts.
      await until(() => asked >= 4);
      assert.ok(asked < 100, `${asked}`);
    } finally {
      Object.defineProperty(PermissionSet.prototype, 'has', real);
    }
    await stream.cancel();
  });

  it('refuses invalid JSON-RPC', async () => {
    for (const [body, status] of [
      ['', 400],
      ['{', 400],
      ['7', 400],
      ['[]', 400],
      ['[[]]', 400],
      [JSON.stringify(Array.from({ length: 101 }, () => call('ping'))), 400],
      [`\uFEFF${JSON.stringify(call('ping'))}`, 400],
      ['{"id":1,"method":"ping"}', 400],
      ['{"jsonrpc":"2.0","id":1}', 400],
      ['{"jsonrpc":"2.0","id":1,"method":7}', 400],
      [JSON.stringify(tool(7)), 400],
      [JSON.stringify(call('tools/call')), 400],
      ['['.repeat(100_000), 400],
      [`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"${'x'.repeat(5_000_000)}"}}`, 413],
    ] as const)
      assert.deepEqual([(await post(deleter, body)).status, got], [status, []], body.slice(0, 60));
    const ping = JSON.stringify(call('ping'));
    assert.equal((await post(reader, ping, { 'content-type': 'text/plain' })).status, 415);
    assert.equal((await post(reader, ping, { 'content-encoding': 'gzip' })).status, 415);
    for (const type of ['application/json; charset=utf-8', 'application/JSON;charset="UTF-8"', 'application/json ;'])
      assert.equal((await post(reader, ping, { 'content-type': type })).status, type.endsWith(';') ? 415 : 200, type);
    const passed = got.length;
    // The message that servers read from these bytes: another one, in UTF-7, with a second name.
    const hidden = ping.replace('"ping"', '"tools/call","params":{"name":"read_a","y":"+ACIALAAiAG4AYQBtAGUAIg-"}');
    for (const type of ['utf-7', 'utf-16', 'utf-8;charset=utf-7', 'utf-7;charset=utf-8', ' utf-8'])
      assert.equal((await post(reader, hidden, { 'content-type': `application/json; charset=${type}` })).status, 415);
    assert.equal(got.length, passed);
    const put = await fetch(url, { method: 'PUT', headers: { authorization: `Bearer ${reader}` }, body: ping });
    assert.deepEqual([put.status, got.length], [403, 2]);
  });

  it('refuses headers that make the server read another message', async () => {
    const say = (headers: Record<string, string>) => post(reader, tool('read_ä'), headers);
    const name = `=?base64?${Buffer.from('read_ä').toString('base64')}?=`;
    assert.equal((await say({ 'mcp-method': 'tools/call', 'mcp-name': name })).status, 200);
    const both = call('tools/call', { name: 'read_a', uri: 'delete_a' });
    for (const header of ['mcp-name', 'mcp_name'])
      assert.equal((await post(reader, both, { [header]: 'delete_a' })).status, 400);
    const task = call('tasks/get', { taskId: 't1' });
    assert.equal((await post(reader, task, { 'mcp-method': 'tasks/get', 'mcp-name': 't1' })).status, 403);
    assert.equal((await post(reader, task, { 'mcp-name': 't2' })).status, 400);
    const read = call('resources/read', { uri: 'file:///docs/a', name: 'file:///docs/b' });
    assert.equal((await post(reader, read, { 'mcp-name': 'file:///docs/a' })).status, 200);
    assert.equal((await post(reader, read, { 'mcp-name': 'file:///docs/b' })).status, 400);
    for (const [header, value] of [
      ['mcp-method', 'tools/list'],
      ['mcp-name', 'delete_a'],
    ] as const)
      assert.deepEqual(
        [(await say({ [header]: value })).status, JSON.parse((await say({ [header]: value })).body).error.code],
        [400, -32_020],
      );
  });

  it('refuses headers that repeat another argument than the tool gets', async () => {
    const given = { path: 'a.txt', Depth: 3, dryRun: true, region: 'ä', where: { shelf_no: 'b' }, note: '/etc/shadow' };
    const read = call('tools/call', { name: 'read_a', arguments: given });
    const encoded = (value: string) => `=?base64?${Buffer.from(value).toString('base64')}?=`;
    for (const headers of [
      { 'Mcp-Param-Path': 'a.txt' },
      { 'Mcp-Param-Path': encoded('a.txt') },
      { 'Mcp-Param-Depth': '3', 'mcp-param-dry-run': 'true' },
      { 'Mcp-Param-Region': encoded('ä'), 'Mcp-Param-Shelf-No': 'b' },
      // The tool's schema can rename an argument.
      { 'Mcp-Param-Folder': 'a.txt' },
    ] as Record<string, string>[])
      assert.equal((await post(reader, read, headers)).status, 200, JSON.stringify(headers));
    got = [];
    for (const headers of [
      { 'Mcp-Param-Path': '/etc/shadow' },
      { 'Mcp-Param-Path': 'a.txt', Mcp_Param_Path: '/etc/shadow' },
      { Mcp_Param_Path: '/etc/shadow' },
      { 'Mcp-Param-Folder': '/etc' },
      { 'Mcp-Param-Depth': '0x3' },
      { 'Mcp-Param-Path': '=?base64?***?=' },
      { 'Mcp-Param-Path': `${encoded('a.txt').slice(0, -2)}***?=` },
      Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`Mcp-Param-${index}`, 'a.txt'])),
    ] as Record<string, string>[]) {
      const { status, body } = await post(reader, read, headers);
      assert.deepEqual([status, JSON.parse(body).error.code], [400, -32_020], JSON.stringify(headers));
    }
    const raw = connectRaw(url);
    const body = JSON.stringify(read);
    const head = [
      'POST /mcp HTTP/1.1',
      'Host: a',
      'Content-Type: application/json',
      `Content-Length: ${body.length + 1}`,
    ];
    raw.request(...head, `Authorization: Bearer ${reader}`, 'Mcp-Param-Path: a.txt', 'Mcp-Param-Path: a.txt');
    raw.send(body.replace('ä', '\u00c3\u00a4'));
    await raw.receives('HTTP/1.1 400 ');
    for (const message of [
      call('ping', { arguments: given }),
      call('prompts/get', { name: 'a', arguments: given }),
      [read],
    ])
      assert.equal(
        (await post(reader, message, { 'Mcp-Param-Path': 'a.txt' })).status,
        Array.isArray(message) ? 200 : 400,
      );
    assert.equal((await post(reader, [read, read], { 'Mcp-Param-Path': 'a.txt' })).status, 400);
    assert.deepEqual(got, [JSON.stringify([read])]);
    for (const name of [
      '=?base64?cmVhZF9h***?=',
      '=?base64?cmVhZF9h?=x',
      '=?base64?cmVh ZF9h?=',
      '=?base64?cmVhZF9hYg?=',
    ])
      assert.equal((await post(reader, tool('read_a'), { 'mcp-name': name })).status, 400, name);
    assert.equal((await post(reader, tool('read_ab'), { 'mcp-name': '=?base64?cmVhZF9hYg?=' })).status, 400);
  });

  it('lets no other protocol be switched to', async () => {
    const raw = connectRaw(url);
    const head = ['GET /mcp HTTP/1.1', 'Host: a', 'Connection: upgrade', 'Upgrade: websocket'];
    raw.request(...head, `Authorization: Bearer ${deleter}`);
    await raw.receives('HTTP/1.1 403 ');
  });

  it('continues with a body that is announced, once its key is accepted', async () => {
    const raw = connectRaw(url);
    const body = JSON.stringify(tool('read_a'));
    const head = ['POST /mcp HTTP/1.1', 'Host: a', 'Expect: 100-continue', 'Content-Type: application/json'];
    raw.request(...head, `Content-Length: ${body.length}`, `Authorization: Bearer ${reader}`);
    await raw.receives('HTTP/1.1 100 Continue');
    raw.send(body);
    await raw.receives('HTTP/1.1 200 OK');
    assert.deepEqual(got, [body]);
  });

  describe('shows only usable parts in lists', () => {
    const lists = {
      tools: [{ name: 'read_a' }, { name: 'delete_a' }, { name: 'other' }, { odd: true }],
      resources: [{ uri: 'file:///docs/a' }, { uri: 'file:///etc/passwd' }],
      resourceTemplates: [{ uriTemplate: 'file:///docs/{a}' }, { uriTemplate: 'file:///{a}' }],
      prompts: [{ name: 'any' }],
      nextCursor: 'c',
    };
    const shown = {
      tools: [{ name: 'read_a' }],
      resources: [{ uri: 'file:///docs/a' }],
      resourceTemplates: [{ uriTemplate: 'file:///docs/{a}' }],
      prompts: [{ name: 'any' }],
      nextCursor: 'c',
    };
    const message = (result: object) => ({ jsonrpc: '2.0', id: 1, result });

    it('in JSON, also in a batch', async () => {
      answer = (asked, outgoing) => {
        const listed = Array.isArray(asked) ? asked.map(() => message(lists)) : message(lists);
        const body = JSON.stringify(listed);
        outgoing.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length });
        outgoing.end(body);
      };
      assert.deepEqual(JSON.parse((await post(reader, call('tools/list'))).body), message(shown));
      const batch = [call('tools/list'), call('prompts/list')];
      assert.deepEqual(JSON.parse((await post(reader, batch)).body), [message(shown), message(shown)]);
      const { tools } = JSON.parse((await post(deleter, call('tools/list'))).body).result;
      assert.deepEqual(tools, [{ name: 'read_a' }, { name: 'delete_a' }]);
    });

    for (const [what, end] of [
      ['LF', '\n'],
      ['CR LF', '\r\n'],
      ['CR', '\r'],
    ] as const)
      it(`in an event stream with ${what}, however it is split, and everything else unchanged`, async () => {
        const notice = `event: message${end}data: {"jsonrpc":"2.0", "method":"notifications/x"}${end}${end}`;
        const [first, second] = JSON.stringify(message(lists)).split(/(?<=\[)/, 2) as [string, string];
        const rest = JSON.stringify(message(lists)).slice(first.length);
        assert.ok(second.length > 0);
        const listed = `id: 7${end}data: ${first}${end}data:${rest}${end}${end}`;
        const stream = `: hello${end}${end}${notice}${listed}retry: 10${end}${end}`;
        answer = (_, outgoing) => {
          outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
          const bytes = Buffer.from(stream);
          let at = 0;
          const next = () => {
            if (at === bytes.length) outgoing.end();
            else outgoing.write(bytes.subarray(at, (at += 1)), () => setImmediate(next));
          };
          next();
        };
        const { body } = await post(reader, call('tools/list'));
        const changed = `id: 7\ndata: ${JSON.stringify(message(shown))}\n\n`;
        assert.equal(
          body.replaceAll(/\r\n?/g, '\n'),
          `: hello\n\n${notice.replaceAll(/\r\n?/g, '\n')}${changed}retry: 10\n\n`,
        );
      });

    it('also in a stream that a GET opens, which ends with the key', async () => {
      let stream: ServerResponse | undefined;
      answer = (_, outgoing) => {
        stream = outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
        outgoing.write(`data: ${JSON.stringify(message(lists))}\n\n`);
      };
      const { secret, principal } = await createPrincipal(service.keys, { name: 'Streaming', permissions: [READ] });
      const raw = connectRaw(url);
      raw.request('GET /mcp HTTP/1.1', 'Host: a', `Authorization: Bearer ${secret}`);
      assert.ok(!(await raw.receives('nextCursor')).includes('delete_a'));
      await service.keys.delete([principal.apiKey.id], OPERATOR);
      await raw.closed();
      stream!.destroy();
    });

    it('also behind a byte order mark, which clients leave out', async () => {
      const text = JSON.stringify(message(lists));
      for (const [type, body] of [
        ['application/json', `\uFEFF${text}`],
        ['application/json\t; charset=utf-8', text],
        ['text/event-stream', `\uFEFFdata: ${text}\n\n`],
        ['text/event-stream', `data: \uFEFF${text}\n\n`],
      ] as const) {
        answer = (_, outgoing) => void outgoing.writeHead(200, { 'content-type': type }).end(body);
        const reply = await post(reader, call('tools/list'));
        assert.deepEqual([reply.status, reply.body.includes('delete_a')], [200, false], JSON.stringify(type));
        assert.ok(reply.body.includes('read_a'));
      }
    });

    it('of an upstream that compresses where it may: it is not offered that', async () => {
      let encodings: unknown[] = [];
      answer = (_, outgoing) => {
        encodings = [outgoing.req.headers['accept-encoding']];
        outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message(lists)));
      };
      assert.equal((await post(reader, call('tools/list'), { 'accept-encoding': 'gzip, br' })).status, 200);
      assert.deepEqual(encodings, ['identity']);
    });

    it('and breaks off where it cannot be looked through', async () => {
      for (const [headers, body] of [
        [{ 'content-encoding': 'gzip' }, 'x'],
        [{}, `${JSON.stringify(message(lists))},`],
      ] as const) {
        answer = (_, outgoing) =>
          void outgoing.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);
        const read = post(reader, call('tools/list')).then(
          ({ status }) => status,
          () => 'broken off',
        );
        assert.ok([502, 'broken off'].includes(await read));
      }
      answer = (_, outgoing) => {
        outgoing.writeHead(200, { 'content-type': 'application/json; charset=utf-16' }).end('x');
      };
      assert.equal((await post(reader, call('tools/list'))).status, 502);
    });
  });

  it('ends a call once its key may not make it any more', async () => {
    let begun: ServerResponse | undefined;
    answer = (_, outgoing) => {
      begun = outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write(': begun\n\n');
    };
    const { secret, principal } = await createPrincipal(service.keys, {
      name: 'Narrowed',
      permissions: [READ, DELETE],
    });
    const raw = connectRaw(url);
    const body = JSON.stringify(tool('delete_a'));
    const head = ['POST /mcp HTTP/1.1', 'Host: a', 'Content-Type: application/json', `Content-Length: ${body.length}`];
    raw.request(...head, `Authorization: Bearer ${secret}`);
    raw.send(body);
    await raw.receives('begun');
    await service.keys.update(principal.apiKey.id, { permissions: [READ] }, OPERATOR);
    await raw.closed();
    begun!.destroy();
  });

  it('ends all streams of a key that is deleted, and no others', async () => {
    const { secret, principal } = await createPrincipal(service.keys, { name: 'Streaming', permissions: [READ] });
    answer = (_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n');
    };
    const open = async (key: string) => {
      const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream' };
      const stream = (await fetch(url, { headers })).body!.getReader();
      await stream.read();
      return stream;
    };
    const [streams, other] = [await Promise.all(Array.from({ length: 40 }, () => open(secret))), await open(reader)];
    const ended = Promise.all(streams.map((stream) => stream.read().catch(() => ({ done: true }))));
    const more = other.read().catch(() => undefined);
    await service.keys.delete([principal.apiKey.id], OPERATOR);
    assert.ok((await ended).every(({ done }) => done));
    assert.equal(await Promise.race([more, Promise.resolve('open')]), 'open');
    await other.cancel();
  });
});
