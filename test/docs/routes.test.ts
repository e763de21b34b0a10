import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { configFile } from '../support/config-file.ts';
import { blocksOf, blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/routes.md';
const FILES = blocksOf(PAGE, 'yaml');

describe('docs/routes.md', () => {
  for (const [index, text] of FILES.entries()) {
    it(`has a valid file whose expectations hold: ${index + 1}`, async () => {
      const { expect } = await loadConfig({ file: configFile(text) });
      assert.ok(expect.length > 2);
    });
  }

  it('has commands with the shown output', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'svc-api.yaml'), FILES[0]!);
    const run = async (text: string) => {
      const { stdout, stderr, code } = await runBlock(blockWith(text, PAGE), folder, { PATH });
      assert.deepEqual([stderr, code], ['', 0]);
      return stdout.replaceAll(folder, '/etc');
    };
    const PATH = pathWithCli(folder);
    assert.equal(await run('routes check'), '/etc/svc-api.yaml: 3 routes; 3 expectations hold\n');
    assert.equal(await run('svc-api explain'), blockWith('is forbidden: the key', PAGE, 'text'));
  });
});
