import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun } from '../support/host.ts';
import { blocksOf, blockWith, pathWithCli } from '../support/pages.ts';
import { cleanEnv, finished, ROOT } from '../support/process.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/how-to/claude-code.md';
/** The page about other clients. */
const CLIENTS = 'docs/agents.md';
const EXAMPLE = join(ROOT, 'examples/mcp');

/** Connects with the configuration of each client on the page, and prints what it can do. */
const CLIENT = `
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
const configs = JSON.parse(process.argv[2]);
for (;;) try { await fetch('http://127.0.0.1:8080/mcp'); await fetch('http://127.0.0.1:3000/mcp'); break; } catch {}
for (const { url, headers } of configs) {
  const authorization = headers.Authorization.replace(/\\$\\{(env:|input:)?(FILES_KEY|files-key)\\}/, process.env.FILES_KEY);
  const client = new Client({ name: 'agent', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization } } }));
  const { tools } = await client.listTools();
  const read = await client.callTool({ name: 'read_file', arguments: { name: 'list.txt' } });
  const deleted = await client.callTool({ name: 'delete_file', arguments: { name: 'list.txt' } }).catch(({ message }) => message);
  console.log(JSON.stringify({ tools: tools.map(({ name }) => name), read: read.content[0].text, deleted }));
  await client.close();
}`;

interface ClientConfig {
  url: string;
  headers: Record<string, string>;
}

describe(`${PAGE}, with examples/mcp`, () => {
  it('has the configuration of the example', () => {
    assert.equal(blockWith('upstreams:', PAGE, 'yaml'), readFileSync(join(EXAMPLE, 'svc-api.yaml'), 'utf8'));
  });

  it('guards the server tool by tool, for each client as its configuration says', async function () {
    needsRoot(this);
    needsPrograms(this, 'unshare', 'ip');
    const folder = tempFolder();
    cpSync(EXAMPLE, folder, { recursive: true });
    const home = join(folder, 'home');
    mkdirSync(home);
    writeFileSync(join(folder, 'client.mjs'), CLIENT);
    const [install, ...rest] = blocksOf(PAGE).join('').split('\n');
    assert.equal(install, 'npm install');
    await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder });
    const configs = [PAGE, CLIENTS]
      .flatMap((page) => blocksOf(page, 'json'))
      .map((block) => JSON.parse(block) as Record<'mcpServers' | 'servers', { files: ClientConfig } | undefined>)
      .map((config) => (config.mcpServers ?? config.servers)!.files);
    // In its own network namespace: all ports are free, and its processes end with it.
    const script = `ip link set lo up\n${rest.join('\n')}\nnode client.mjs '${JSON.stringify(configs)}'`;
    const machine = ['--net', '--pid', '--fork', '--mount-proc', '--kill-child', 'bash', '--norc', '-euo', 'pipefail'];
    const env = { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), PATH: pathWithCli(folder), LOG_LEVEL: 'error' };
    const { stdout, stderr, code } = await finished(
      spawn('unshare', [...machine, '-c', script], {
        cwd: folder,
        env: cleanEnv(env),
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    assert.equal(code, 0, stderr);
    const answers = Array.from(stdout.matchAll(/^\{"tools".*\}$/gm), ([answer]) => JSON.parse(answer) as unknown[]);
    const { deleted } = answers[0] as unknown as { deleted: string };
    assert.match(deleted, /FILES:DELETE_ANY/);
    const expected = { tools: ['list_files', 'read_file'], read: 'Buy bread.\n', deleted };
    assert.deepEqual(answers, [expected, expected, expected]);
  });
});
