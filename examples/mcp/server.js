import { readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, resolve, sep } from 'node:path';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

// An MCP server for the files of a folder. It does not check keys, so only the guard must be able to reach it.
const folder = resolve(process.env.FILES ?? 'files');
const port = Number(process.env.PORT ?? 3000);

const text = (value) => ({ content: [{ type: 'text', text: value }] });

/** The path of a file in the folder. Paths that lead outside it are refused. */
function pathOf(name) {
  const path = join(folder, name);
  if (!path.startsWith(folder + sep)) throw new Error(`${name} is not in the folder.`);
  return path;
}

function createFilesServer() {
  const server = new McpServer({ name: 'files', version: '1.0.0' });
  const name = z.string().describe('The name of the file');
  server.registerTool('list_files', { description: 'Lists the files.' }, async () =>
    text((await readdir(folder)).join('\n')),
  );
  server.registerTool('read_file', { description: 'Reads a file.', inputSchema: { name } }, async ({ name }) =>
    text(await readFile(pathOf(name), 'utf8')),
  );
  server.registerTool('delete_file', { description: 'Deletes a file.', inputSchema: { name } }, async ({ name }) => {
    await rm(pathOf(name));
    return text(`${name} is deleted.`);
  });
  return server;
}

createServer(async (incoming, outgoing) => {
  // Without sessions, since each request is independent.
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  const server = createFilesServer();
  outgoing.on('close', () => server.close());
  await server.connect(transport);
  await transport.handleRequest(incoming, outgoing);
}).listen(port, '127.0.0.1', () => console.error(`MCP at http://127.0.0.1:${port}/mcp`));
