import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_FIELDS } from '../../src/config/read-config.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/configuration.md';

describe(PAGE, () => {
  it('has every field in its table and in its file, which can be read', async () => {
    const page = readFileSync(join(ROOT, PAGE), 'utf8');
    const rows = new Set(
      Array.from(page.matchAll(/^\| (`.*?`) \|/gm), ([, fields]) => fields!)
        .join(' ')
        .match(/[\w$]+/g),
    );
    for (const field of CONFIG_FIELDS) assert.ok(rows.has(field), field);
    const file = join(tempFolder(), 'svc-api.yaml');
    const text = blockWith('resources: [GRAFANA', PAGE, 'yaml');
    writeFileSync(file, text);
    const { routes, tls } = await loadConfig({ file });
    assert.deepEqual([routes.length, tls?.cert], [2, join(file, '../tls/cert.pem')]);
    for (const field of CONFIG_FIELDS) assert.match(text, new RegExp(`^(# .*)?${field.replace('$', '\\$')}[:=]`, 'm'));
  });

  it('has commands that grant what the file declares', async () => {
    const folder = tempFolder();
    const env = { PATH: pathWithCli(folder) };
    const { code, stdout, stderr } = await runBlock(blockWith('resources: [WIKI]', PAGE), folder, env);
    assert.deepEqual([code, stdout], [0, 'yes: role EDITOR\n'], stderr);
  });

  it('has the text of faults with lines and columns', async () => {
    const folder = tempFolder();
    const env = { PATH: pathWithCli(folder), SVC_API_CONFIG: 'svc-api.yaml' };
    writeFileSync(join(folder, 'svc-api.yaml'), 'resources: [WIKI]\nroles: { EDITOR: [WIKI:REED_ANY] }\nroute: []\n');
    const { code, stderr } = await runBlock('svc-api apikey list', folder, env);
    const said = blockWith('CONFIG_INVALID', PAGE, 'text').replaceAll(/\s+/g, ' ').trim();
    assert.equal(code, 2);
    assert.ok(stderr.replaceAll(`${folder}/`, '').replaceAll(/\s+/g, ' ').includes(said), stderr);
  });
});
