import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { changeDirectly } from '../support/direct.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/apply.md';

/** A folder with svc-api in the PATH, a store, and a file of declared keys. */
function workspace() {
  const folder = tempFolder();
  const env = { PATH: pathWithCli(folder), SVC_API_DATABASE: join(folder, 'store', 'keys.sqlite') };
  return {
    folder,
    declare: (text: string) => writeFileSync(join(folder, 'keys.yaml'), text),
    run: (script: string) => runBlock(script, folder, env),
  };
}

describe('docs/apply.md', () => {
  it('has a file that can be applied, in a pipeline as it has it', async () => {
    const { folder, declare, run } = workspace();
    declare(blockWith('name: CI deploy', PAGE, 'yaml'));
    const { steps } = parse(blockWith('steps:', PAGE, 'yaml')) as { steps: { run: string }[] };
    assert.equal(steps.length, 2);
    for (const step of [...steps, ...steps]) {
      const { code, stdout, stderr } = await run(step.run.replace('/run/secrets', folder));
      assert.equal(code, 0, stdout + stderr);
    }
  });

  it('has the text of errors with lines and columns', async () => {
    const { declare, run } = workspace();
    declare(
      [
        'keys:',
        '  - name: A',
        '    description: a key',
        '    roles: [VIEWR]',
        '  - name: B',
        '    description: another',
        '    roles: [GUEST]',
        '    expiresAt: tomorrow',
      ].join('\n'),
    );
    const text = await run('svc-api apikey apply -f keys.yaml');
    assert.equal(text.code, 2);
    const said = blockWith('VIEWR', PAGE, 'text').replaceAll(/\s+/g, ' ');
    assert.ok(text.stderr.replaceAll(/\s+/g, ' ').includes(said.trim()), text.stderr);
  });

  it('has a plan as it is shown', async () => {
    const { folder, declare, run } = workspace();
    const key = (name: string, grants: string) => `  - name: ${name}\n    ${grants}\n`;
    const others = ['A', 'B', 'C'].map((name) => key(name, 'roles: [GUEST]')).join('');
    const backup = key('Backup', 'roles: [GUEST]\n    rotate: { every: 90d }');
    declare(`keys:\n${others}${key('CI deploy', 'roles: [VIEWER]')}${key('Old report', 'roles: [GUEST]')}${backup}`);
    await run('svc-api apikey apply -f keys.yaml --secrets-dir secrets');
    await changeDirectly(
      join(folder, 'store', 'keys.sqlite'),
      `update api_keys set created_at = created_at - ${92 * 86_400_000} where name = 'Backup'`,
    );
    const changed = key('CI deploy', 'roles: [VIEWER]\n    permissions: [SERVICES:UPDATE_ANY]');
    declare(`keys:\n${key('Dashboard', 'roles: [GUEST]')}${changed}${backup}${others}`);
    const { code, stdout } = await run('svc-api apikey apply -f keys.yaml --prune --dry-run');
    assert.deepEqual([code, stdout], [2, blockWith('Plan:', PAGE, 'text')]);
  });

  it('hands new secrets to a command', async () => {
    const { declare, run } = workspace();
    declare(blockWith('name: CI deploy', PAGE, 'yaml'));
    const { code, stderr } = await run(blockWith('--exec', PAGE));
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^Success! Data written to: secret\/ci\/CI deploy\nSuccess! .*Dashboard\n$/);
  });
});
