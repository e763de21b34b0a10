import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { byRoutes } from '../../../src/features/guard/access.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createRouter, type Route } from '../../../src/features/routes/index.ts';
import { type GuardedService, startGuarded } from './support/guard.ts';
import { createPrincipal } from '../../support/keys.ts';
import { until } from '../../support/until.ts';

const route = (action: string, mcp: Route['mcp']): Route => ({
  host: '*',
  path: '/mcp',
  allow: { kind: 'all', permissions: [`DOCKER:${action}` as 'DOCKER:READ_ANY'] },
  preflightOpen: false,
  ...(mcp && { mcp }),
});
const ROUTES = [
  route('READ_ANY', { tools: ['read_*'], resources: ['file:///docs/*'], prompts: ['*'] }),
  route('DELETE_ANY', { tools: ['delete_*'], resources: [], prompts: [] }),
];

for (const enableJsonResponse of [false, true])
  describe(`an MCP server of the official SDK behind a guard, answering by ${enableJsonResponse ? 'JSON' : 'event streams'}`, () => {
    let service: GuardedService;
    let url: URL;
    const transports = new Map<string, StreamableHTTPServerTransport>();
    const servers: McpServer[] = [];
    const calls: string[] = [];
    const clients: Client[] = [];

    const createServer = () => {
      const server = new McpServer({ name: 'files', version: '1.0.0' }, { capabilities: { logging: {} } });
      for (const name of ['read_file', 'read_folder', 'delete_file'])
        server.registerTool(name, { description: name }, async (extra) => {
          calls.push(name);
          await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'working' } });
          return { content: [{ type: 'text', text: `${name} done` }] };
        });
      for (const path of ['docs/a', 'etc/passwd'])
        server.registerResource(path, `file:///${path}`, {}, async (uri) => ({
          contents: [{ uri: uri.href, text: path }],
        }));
      server.registerPrompt('greet', {}, () => ({ messages: [] }));
      servers.push(server);
      return server;
    };

    const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
      const session = String(incoming.headers['mcp-session-id']);
      let transport = transports.get(session);
      if (!transport) {
        const created = new StreamableHTTPServerTransport({
          sessionIdGenerator: randomUUID,
          enableJsonResponse,
          onsessioninitialized: (id) => void transports.set(id, created),
        });
        await createServer().connect(created);
        transport = created;
      }
      await transport.handleRequest(incoming, outgoing);
    };

    before(async () => {
      service = await startGuarded((incoming, outgoing) => void handle(incoming, outgoing));
      url = new URL(`${await service.beside({ requirements: byRoutes(createRouter(ROUTES)) })}/mcp`);
    });
    after(async () => {
      await Promise.all(clients.map((client) => client.close()));
      await service.stop();
    });

    const connect = async (name: string, permissions: `DOCKER:${'READ' | 'DELETE'}_ANY`[]) => {
      const { secret, principal } = await createPrincipal(service.keys, { name, permissions });
      const transport = new StreamableHTTPClientTransport(url, {
        requestInit: { headers: { authorization: `Bearer ${secret}` } },
        reconnectionOptions: {
          initialReconnectionDelay: 1,
          maxReconnectionDelay: 1,
          reconnectionDelayGrowFactor: 1,
          maxRetries: 0,
        },
      });
      const client = new Client({ name: 'test', version: '1.0.0' });
      await client.connect(transport);
      clients.push(client);
      return { client, transport, id: principal.apiKey.id };
    };

    it('shows a client what its key may use, and lets it use that', async () => {
      const { client, transport } = await connect('Reader', ['DOCKER:READ_ANY']);
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['read_file', 'read_folder'],
      );
      const { resources } = await client.listResources();
      assert.deepEqual(
        resources.map(({ uri }) => uri),
        ['file:///docs/a'],
      );
      assert.equal((await client.listPrompts()).prompts.length, 1);
      assert.deepEqual((await client.callTool({ name: 'read_file' })).content, [
        { type: 'text', text: 'read_file done' },
      ]);
      assert.equal((await client.readResource({ uri: 'file:///docs/a' })).contents.length, 1);
      await transport.terminateSession();
    });

    it('refuses the rest with 403, and it never reaches the server', async () => {
      const { client } = await connect('Other reader', ['DOCKER:READ_ANY']);
      calls.length = 0;
      await assert.rejects(client.callTool({ name: 'delete_file' }), /insufficient_scope|403|DOCKER:DELETE_ANY/);
      await assert.rejects(client.readResource({ uri: 'file:///etc/passwd' }), /403|No key may|not allowed/);
      assert.deepEqual(calls, []);
      const { client: deleter } = await connect('Deleter', ['DOCKER:READ_ANY', 'DOCKER:DELETE_ANY']);
      await deleter.callTool({ name: 'delete_file' });
      assert.deepEqual(calls, ['delete_file']);
    });

    it('notifies clients of changed lists, which are filtered, too', async () => {
      const { client } = await connect('Listening', ['DOCKER:READ_ANY']);
      const server = servers.at(-1)!;
      let told = 0;
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (told += 1));
      await until(async () => {
        if (told === 0) server.sendToolListChanged();
        return told > 0;
      });
      server.registerTool('delete_all', {}, () => ({ content: [] }));
      server.registerTool('read_all', {}, () => ({ content: [] }));
      const names = (await client.listTools()).tools.map(({ name }) => name);
      assert.deepEqual(names, ['read_file', 'read_folder', 'read_all']);
    });

    it('closes the streams of a key that is deleted', async () => {
      const { client, transport, id } = await connect('Ended', ['DOCKER:READ_ANY']);
      let ended = false;
      // The transport has no events.
      Object.assign(transport, { onerror: () => (ended = true) });
      await service.keys.delete([id], OPERATOR);
      await until(() => ended);
      await assert.rejects(client.listTools());
    });
  });
