import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { POLICY_RULES } from '../../src/keys/permissions/policy.ts';
import { testCli } from '../support/cli.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/configuration.md';

describe(`${PAGE}, on the policy`, () => {
  it('has every rule in its file, which can be read', async () => {
    const file = join(tempFolder(), 'svc-api.yaml');
    const rules = blockWith('policy:\n', PAGE, 'yaml');
    writeFileSync(file, `resources: [WIKI]\n${rules}`);
    const { policy } = await loadConfig({ file });
    for (const rule of POLICY_RULES) assert.ok(policy[rule], rule);
  });

  it('refuses keys without an expiry, or with a late one', async () => {
    const folder = tempFolder();
    const commands = blockWith('requireExpiry', PAGE);
    const { code, stdout, stderr } = await runBlock(commands, folder, { PATH: pathWithCli(folder) });
    assert.deepEqual([code, stdout.match(/^svc_/gm)?.length], [0, 1], stderr);
    const shown = blockWith('POLICY_VIOLATED', PAGE, 'text');
    const withoutTimes = (text: string) =>
      text
        .replaceAll(/\d{4}-\S+Z/g, '<time>')
        .replaceAll(/\s+/g, ' ')
        .trim();
    assert.ok(withoutTimes(stderr).includes(withoutTimes(shown)), stderr);
    const { stdout: list } = await testCli(join(folder, 'keys.sqlite')).run(['apikey', 'list']);
    assert.match(list, /^Report bot\t/);
  });
});
