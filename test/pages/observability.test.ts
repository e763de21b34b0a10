import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { mustRun } from '../support/host.ts';
import { blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv, finished, ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const PAGE = 'docs/observability.md';
const OPTIONS = '--noEmit --strict --module nodenext --target es2023 --types node --skipLibCheck'.split(' ');

/** Code around the page's lines for a user's own server. */
const AROUND = [
  `import type { AddressInfo } from 'node:net';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { createServer } from 'node:http';
import expressOf from 'express';
import fastifyOf from 'fastify';
import { Hono } from 'hono';
import { openKeys, openLog, startTelemetry } from 'svc-api';
const [express, metricsApp, fastify] = [expressOf(), expressOf(), fastifyOf()];
const hono = new Hono<{ Bindings: HttpBindings }>();
const log = await openLog('info');
`,
  `telemetry.measure(await openKeys({ timer: telemetry.storeTimer }));
const servers = [createServer(express), createServer(getRequestListener(hono.fetch))];
for (const server of servers) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const urls = servers.map((server) => 'http://127.0.0.1:' + (server.address() as AddressInfo).port);
urls.push(await fastify.listen({ host: '127.0.0.1', port: 0 }));
const ids = [];
for (const url of urls) ids.push((await fetch(url + '/keys/healthz')).headers.get('x-request-id'));
const metrics = metricsApp.listen(0, '127.0.0.1');
await new Promise((resolve) => metrics.once('listening', resolve));
const scrape = await fetch('http://127.0.0.1:' + (metrics.address() as AddressInfo).port + '/metrics');
console.log(JSON.stringify({ ids, type: scrape.headers.get('content-type'), text: await scrape.text() }));
await telemetry.stop();
process.exitCode = 0;
setTimeout(() => process.exit(), 100);
`,
];

/** A type-checked program in a folder with svc-api and other packages. */
async function programOf(text: string): Promise<string> {
  const folder = tempFolder();
  const packages = join(folder, 'node_modules');
  mkdirSync(packages);
  symlinkSync(ROOT, join(packages, 'svc-api'));
  for (const name of ['@hono', '@types', 'express', 'fastify', 'hono'])
    symlinkSync(join(ROOT, 'node_modules', name), join(packages, name));
  const file = join(folder, 'program.mts');
  writeFileSync(file, text);
  await mustRun(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...OPTIONS, file], { cwd: folder });
  return file;
}

describe(PAGE, () => {
  it('has a program with a request log and metrics, in TypeScript as well', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI', { roles: ['VIEWER'] });
    const port = await freePort();
    const file = await programOf(blockWith('await listen({', PAGE, 'js').replace('4000', String(port)));
    const child = spawn(process.execPath, [file], { env: cleanEnv({ SVC_API_DATABASE: cli.database }) });
    const end = finished(child);
    try {
      const url = `http://127.0.0.1:${port}`;
      await until(async () => (await fetch(`${url}/healthz`).catch(() => undefined))?.ok ?? child.exitCode !== null);
      assert.deepEqual((await query(url, key, '{ me { name } }')).body, { data: { me: { name: 'CI' } } });
    } finally {
      child.kill('SIGTERM');
    }
    await end;
  });

  it('says how requests to servers of the host are watched, and metrics exposed', async () => {
    const cli = testCli();
    await cli.given('CI', { roles: ['VIEWER'] });
    const file = await programOf(AROUND.join(blockWith('metricsApp.get', PAGE, 'js')));
    const child = spawn(process.execPath, [file], { env: cleanEnv({ SVC_API_DATABASE: cli.database }) });
    const { code, stdout, stderr } = await finished(child);
    assert.equal(code, 0, stderr);
    const { ids, type, text } = JSON.parse(stdout) as { ids: string[]; type: string; text: string };
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { requestId: string; endpoint: string });
    assert.deepEqual(
      lines.map(({ requestId, endpoint }) => [requestId, endpoint]),
      ids.map((id) => [id, 'health']),
    );
    assert.match(type, /^text\/plain; version=0\.0\.4/);
    assert.match(text, /^svc_api_requests_total\{endpoint="health",code="404"\} 3$/m);
    assert.match(text, /^svc_api_keys\{status="active"\} 1$/m);
  });
});
