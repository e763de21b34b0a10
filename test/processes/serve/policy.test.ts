import assert from 'node:assert/strict';
import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { cleanEnv, startCli } from '../../support/process.ts';
import { query } from '../../support/server.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

/** Speeds up the hourly task to ten times a second. */
const HASTE = `data:text/javascript,${encodeURIComponent(
  'const { setInterval: later } = globalThis;' +
    'globalThis.setInterval = (work, ms, ...rest) => later(work, ms === 3600000 ? 100 : ms, ...rest);',
)}`;

describe('serve with a policy', () => {
  let test: TestKeys;
  let child: ChildProcess;
  let file: string;
  const log: string[] = [];
  const start = async () => {
    child = startCli(['serve', '--port', '0', '--database', test.database, '--config', file], {
      env: cleanEnv({ LOG_LEVEL: 'info', NODE_OPTIONS: `--import=${HASTE}` }),
    });
    createInterface({ input: child.stderr! }).on('line', (line) => log.push(line));
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    return String(line).slice('Listening on '.length).trim();
  };
  const said = (message: string) => log.filter((line) => line.includes(`"msg":"${message}"`)).length;
  before(async () => {
    test = await openTestKeys();
    file = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(file, 'policy: { requireExpiry: true }\n');
  });
  after(async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
    await test.store.close();
  });

  it('holds requests to it, takes another one while it runs, and has unused keys disabled by themselves', async () => {
    test.time.now = Date.now() - 61 * UNIT_MS.d;
    const { apiKey: idle } = await test.keys.create({ name: 'Idle', roles: ['VIEWER'] }, OPERATOR);
    test.time.now = Date.now();
    const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const url = await start();
    const create = async () => {
      const { body } = await query(
        url,
        secret,
        'mutation { createApiKey(input: { name: "A", roles: [VIEWER] }) { key } }',
      );
      return body.errors?.[0]?.message;
    };
    assert.match((await create())!, /requireExpiry: true/);
    writeFileSync(file, 'policy: { grantableByKeys: [GUEST], disableUnused: 60d }\n');
    child.kill('SIGHUP');
    await until(async () => said('the configuration was loaded') > 0);
    assert.match((await create())!, /grantableByKeys: GUEST/);
    await until(async () => said('disabled keys that were not used, as the policy says') > 0);
    assert.notEqual((await test.keys.findById(idle.id, OPERATOR))!.disabledAt, null);
    const { body } = await query(url, secret, '{ me { status } }');
    assert.deepEqual(body, { data: { me: { status: 'ACTIVE' } } });
    writeFileSync(file, 'audit: { keep: 60d }\n');
    child.kill('SIGHUP');
    await until(async () => said('pruned the audit log, as configured') > 0);
    assert.equal((await test.keys.audit.read({ apiKey: idle.id, action: 'create' }, OPERATOR)).length, 0);
    assert.equal((await test.keys.audit.read({ action: 'prune', actor: 'audit.keep' }, OPERATOR)).length, 1);
  });
});
