import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadConfig } from '../../src/config/load-config.ts';
import { allSections } from '../../src/config/read-config.ts';
import { testCli } from '../support/cli.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { cleanEnv, ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/configuration.md';

describe(PAGE, () => {
  it('has every field in its table and in its file, which can be read', async () => {
    const page = readFileSync(join(ROOT, PAGE), 'utf8');
    const rows = new Set(
      Array.from(page.matchAll(/^\| (`.*?`) \|/gm), ([, fields]) => fields!)
        .join(' ')
        .match(/[\w$-]+/g),
    );
    const fields = ['$schema', ...(await allSections()).keys()];
    for (const field of fields) assert.ok(rows.has(field), field);
    const file = join(tempFolder(), 'svc-api.yaml');
    const text = blockWith('resources: [GRAFANA', PAGE, 'yaml');
    writeFileSync(file, text);
    const { routes, tls } = await loadConfig({ file });
    assert.deepEqual([routes.length, tls?.cert], [2, join(file, '../tls/cert.pem')]);
    for (const field of fields) assert.match(text, new RegExp(`^(# .*)?${field.replace('$', '\\$')}[:=]`, 'm'));
  });

  it('has a program that goes by all of the file', async () => {
    const folder = tempFolder();
    const cli = testCli();
    const { key } = await cli.given('CI', { roles: ['GUEST'] });
    writeFileSync(join(folder, 'svc-api.yaml'), 'limits: { default: [1/d] }\n');
    const program = `${blockWith('loadConfig', PAGE, 'js')}\nconsole.log(server.url);`
      .replace("'svc-api'", `'${pathToFileURL(join(ROOT, 'dist/index.js')).href}'`)
      .replace('4000', '0');
    writeFileSync(join(folder, 'program.mjs'), program);
    const child = spawn(process.execPath, [join(folder, 'program.mjs')], {
      env: cleanEnv({ SVC_API_DATABASE: cli.database, SVC_API_CONFIG: join(folder, 'svc-api.yaml') }),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const ended = once(child, 'exit').then(() => assert.fail('It has ended.'));
      const [url] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer];
      const ask = () => query(String(url).trim(), key, '{ online }');
      assert.deepEqual([(await ask()).status, (await ask()).status], [200, 429]);
    } finally {
      child.kill();
    }
  });

  it('has commands that grant what the file declares', async () => {
    const folder = tempFolder();
    const env = { PATH: pathWithCli(folder) };
    const { code, stdout, stderr } = await runBlock(blockWith('resources: [WIKI]', PAGE), folder, env);
    assert.deepEqual([code, stdout], [0, 'yes: role EDITOR\n'], stderr);
  });

  it('has the text of issues with lines and columns', async () => {
    const folder = tempFolder();
    const env = { PATH: pathWithCli(folder), SVC_API_CONFIG: 'svc-api.yaml' };
    writeFileSync(join(folder, 'svc-api.yaml'), 'resources: [WIKI]\nroles: { EDITOR: [WIKI:REED_ANY] }\nroute: []\n');
    const { code, stderr } = await runBlock('svc-api apikey list', folder, env);
    const said = blockWith('CONFIG_INVALID', PAGE, 'text').replaceAll(/\s+/g, ' ').trim();
    assert.equal(code, 2);
    assert.ok(stderr.replaceAll(`${folder}/`, '').replaceAll(/\s+/g, ' ').includes(said), stderr);
  });
});
