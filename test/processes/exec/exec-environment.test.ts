import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { postgresStore } from '../../support/postgres.ts';
import { runCli } from '../../support/process.ts';

const PRINT = ['--roles', 'GUEST', '--', process.execPath, '-p', 'JSON.stringify(process.env)'];
const CREDENTIALS = {
  PGPASSWORD: 'hunter2',
  PGPASSFILE: '/nowhere/pgpass',
  PGSERVICEFILE: '/nowhere/service',
  PGSSLPASSWORD: 'hunter2',
};

describe('the environment of a command that exec runs', () => {
  async function environmentOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
    const { code, stdout, stderr } = await runCli(['apikey', 'exec', ...args, ...PRINT], { env });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as Record<string, string>;
  }

  it('has neither the URL nor a password of a store on PostgreSQL', async () => {
    const env = await environmentOf([], { ...CREDENTIALS, SVC_API_DATABASE: postgresStore() });
    for (const name of ['SVC_API_DATABASE', ...Object.keys(CREDENTIALS)]) assert.equal(env[name], undefined, name);
    assert.match(env['API_KEY'] ?? '', /^svc_/);
  });

  it('has them no more when --database names the store', async () => {
    const env = await environmentOf(['--database', postgresStore()], CREDENTIALS);
    for (const name of Object.keys(CREDENTIALS)) assert.equal(env[name], undefined, name);
  });

  it('has no URL that --database overrides', async () => {
    const env = await environmentOf(['--database', testCli().database], {
      SVC_API_DATABASE: 'postgres://me:hunter2@host/db',
    });
    assert.equal(env['SVC_API_DATABASE'], undefined);
  });

  it('keeps the path of a store in a file, and the credentials of other databases', async () => {
    const { database } = testCli();
    const env = await environmentOf([], { ...CREDENTIALS, SVC_API_DATABASE: database });
    assert.equal(env['SVC_API_DATABASE'], database);
    assert.equal(env['PGPASSWORD'], 'hunter2');
  });
});
