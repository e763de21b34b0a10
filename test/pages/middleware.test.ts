import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { testCli } from '../support/cli.ts';
import { blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** A program of the page, on this port, with the packages of this checkout. */
function programWith(text: string, port: number): string {
  const block = blockWith(text, 'docs/middleware.md', 'js');
  return `const backUp = async (disk) => ({ disk });\n${block}`
    .replace('4000', String(port))
    .replaceAll(/from '(svc-api)(?:\/(\w+))?'/g, (_, _name, entry = 'index') => `from '${built(entry as string)}'`)
    .replaceAll(/from '(express|fastify)'/g, (_, name: string) => `from '${import.meta.resolve(name)}'`);
}

function built(entry: string): string {
  return pathToFileURL(join(ROOT, `dist/${entry}.js`)).href;
}

describe('docs/middleware.md', () => {
  const programs = [
    ["import express from 'express'", '/backups/latest', '{"by":"CI"}'],
    ["import { createServer } from 'node:http'", '/', 'CI'],
    ["import fastify from 'fastify'", '/backups/latest', '{"by":"CI"}'],
  ] as const;
  for (const [text, path, expected] of programs)
    it(`has a program that guards what it serves: ${text}`, async () => {
      const cli = testCli();
      const { key } = await cli.given('CI', { permissions: ['DOCKER:READ_ANY'] });
      const port = await freePort();
      const file = join(tempFolder(), 'program.mjs');
      writeFileSync(file, programWith(text, port));
      const child = spawn(process.execPath, [file], {
        env: cleanEnv({ SVC_API_DATABASE: cli.database }),
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      try {
        const url = `http://127.0.0.1:${port}`;
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        await until(() =>
          fetch(url).then(
            () => true,
            () => false,
          ),
        );
        assert.equal((await fetch(url + path)).status, 401);
        assert.equal(await (await fetch(url + path, { headers })).text(), expected);
        if (path === '/') return;
        const reply = await fetch(`${url}/backups`, { method: 'POST', headers, body: '{"disk":"sda"}' });
        assert.deepEqual(await reply.json(), { disk: 'sda' });
      } finally {
        child.kill();
      }
    });
});
