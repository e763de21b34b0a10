import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataFolder } from '../support/plugins.ts';
import { runCliWithInput } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const NAME = 'svc-api-approval';
const APPROVAL = `{
  name: '${NAME}',
  checks: [
    {
      name: 'SVC_API_APPROVAL',
      run: async ({ config, store }) => {
        const keys = await store?.repository.list({ limit: 10 });
        const text = (config ? config.limits ? 'read' : '?' : 'invalid') + ', keys: ' + keys?.map(({ name }) => name).join(' ');
        return [{ status: 'warning', message: text, remedy: 'Approve them.' }];
      },
    },
    { name: 'SVC_API_APPROVAL_WRITES', run: async ({ store }) => store.repository.write(async () => {}) },
  ],
}`;

interface Finding {
  check: string;
  status: string;
  message: string;
  remedy: string | null;
}

describe('a plugin with checks', () => {
  it('has them made by doctor, over the store and the configuration', async () => {
    const data = new DataFolder();
    data.install(NAME, APPROVAL);
    const folder = tempFolder();
    const [database, config] = [join(folder, 'keys.sqlite'), join(folder, 'svc-api.yaml')];
    writeFileSync(config, 'roles: {}\n');
    const env = { ...data.env, SVC_API_DATABASE: database, SVC_API_CONFIG: config };
    const doctor = async (...args: string[]) => runCliWithInput('', ['doctor', ...args], { env });
    const ownOf = (stdout: string) =>
      (JSON.parse(stdout) as { checks: Finding[] }).checks
        .filter(({ check }) => check.startsWith('SVC_API'))
        .map(({ check, status, message }) => `${check} ${status} ${message}`);
    const [missing] = ownOf((await doctor('--json')).stdout);
    assert.equal(missing, 'SVC_API_APPROVAL warning read, keys: undefined');
    await runCliWithInput('', ['apikey', 'create', '--name', 'CI', '--roles', 'GUEST'], { env });
    const { code, stdout } = await doctor('--json');
    const [warning, failure] = ownOf(stdout);
    assert.equal(warning, 'SVC_API_APPROVAL warning read, keys: CI');
    assert.match(failure!, /^SVC_API_APPROVAL_WRITES failure The check of the plugin svc-api-approval failed/);
    assert.equal(code, 1);
    const text = (await doctor()).stdout;
    assert.match(text, /^warning {2}SVC_API_APPROVAL {9}read, keys: CI\n {34}Approve them\.$/m);
    writeFileSync(config, 'rooles: {}\n');
    assert.equal(ownOf((await doctor('--json')).stdout)[0], 'SVC_API_APPROVAL warning invalid, keys: CI');
  });

  it('is refused by name if a check has the name of another one', async () => {
    const data = new DataFolder();
    data.install(NAME, `{ name: '${NAME}', checks: [{ name: 'STORE', run: async () => [] }] }`);
    const { code, stderr } = await runCliWithInput('', ['apikey', 'list'], { env: data.env });
    assert.notEqual(code, 0);
    assert.match(stderr, /svc-api-approval is invalid.*"STORE" must be named "SVC_API_APPROVAL"/);
  });
});
