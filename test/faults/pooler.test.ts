import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readPostgresUrl } from '../../src/store/postgres-address.ts';
import { testCli } from '../support/cli.ts';
import { askPostgres, migratedPostgresStore } from '../support/postgres.ts';
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { runCli, startCli } from '../support/process.ts';
import { query } from '../support/server.ts';
import { needsPrograms } from '../support/skip.ts';
import { until } from '../support/until.ts';

/** The parameters that PgBouncer must ignore, from docs/postgresql.md. */
const IGNORED = 'lock_timeout, statement_timeout, idle_in_transaction_session_timeout';

describe('behind PgBouncer', () => {
  let store: string;
  /** The URL of the same store for a role with the schema in its search path. */
  let direct: string;
  let pooler: PgBouncer | undefined;
  let server: ChildProcess | undefined;

  before(async function () {
    needsPrograms(this, 'pgbouncer');
    store = await migratedPostgresStore();
    const { schema } = readPostgresUrl(store);
    const url = new URL(store);
    [url.username, url.password] = [`${schema}_pooled`, randomBytes(8).toString('hex')];
    url.searchParams.delete('schema');
    direct = url.href;
    await askPostgres(
      store,
      `create role ${url.username} superuser login password '${url.password}';
      alter role ${url.username} set search_path = ${schema}, pg_temp`,
    );
  });
  afterEach(async () => {
    server?.kill();
    await pooler?.stop();
    pooler = undefined;
  });
  after(async () => {
    if (direct) await askPostgres(store, `drop role ${new URL(direct).username}`);
  });

  it('that pools transactions, serve says that notifications are lost, and refuses a deleted key at once; with sessions they arrive', async () => {
    const cli = testCli(direct);
    pooler = await startPgBouncer(direct, { pool_mode: 'transaction', ignore_startup_parameters: IGNORED });
    const args = ['serve', '--port', '0', '--database', pooler.url];
    server = startCli(args, { env: { LOG_LEVEL: 'info' } });
    let log = '';
    server.stderr!.setEncoding('utf8').on('data', (text: string) => (log += text));
    const [, url] = /(http:\S+)/.exec(String((await once(server.stdout!, 'data'))[0]))!;
    const ask = async (secret: string) => (await query(url!, secret, '{ online }')).status;
    const said = (what: string) => log.split('\n').filter((line) => line.includes(what)).length;

    const NOT_IN_SESSION = 'a connection pooler is not in session mode';
    await until(() => said(NOT_IN_SESSION) > 0);
    for (let round = 0; round < 10; round += 1) {
      const { key } = await cli.given(`CI ${round}`);
      for (let request = 0; request < 20; request += 1) assert.equal(await ask(key), 200);
      await cli.run(['apikey', '--delete', '--name', `CI ${round}`]);
      assert.equal(await ask(key), 401);
    }
    assert.equal(said('arrive again'), 0);
    assert.equal(said(NOT_IN_SESSION), 1);

    await pooler.stop();
    pooler = await startPgBouncer(
      direct,
      { pool_mode: 'session', ignore_startup_parameters: IGNORED },
      Number(new URL(pooler.url).port),
    );
    await until(() => said('change notifications arrive again') === 1);

    // Another reason is reported, too.
    const lost = said('notifications are lost');
    await pooler.stop();
    await until(() => said('notifications are lost') > lost);
    pooler = await startPgBouncer(
      direct,
      { pool_mode: 'transaction', ignore_startup_parameters: IGNORED },
      Number(new URL(pooler.url).port),
    );
    await until(() => said(NOT_IN_SESSION) === 2);
    assert.equal(said('arrive again'), 1);
  });

  for (const [parameter, text] of [
    ['lock_timeout', /refuses start-up parameters\. .* ignore_startup_parameters = lock_timeout, /],
    ['options', /refuses "schema" and PGOPTIONS\. Leave them out, and set the search path/],
  ] as const) {
    it(`that refuses ${parameter}, commands say what to do`, async () => {
      const ignore = parameter === 'options' ? IGNORED : 'extra_float_digits';
      pooler = await startPgBouncer(direct, { ignore_startup_parameters: ignore });
      const database = `${pooler.url}${parameter === 'options' ? '?schema=svc_api' : ''}`;
      const { code, stdout } = await runCli(['apikey', 'list', '--json', '--database', database]);
      assert.equal(code, 1);
      const answer = JSON.parse(stdout) as { code: string; error: string };
      assert.equal(answer.code, 'STORE_UNAVAILABLE');
      assert.match(answer.error, text);
    });
  }

  it('that ignores the schema, no other schema is used', async () => {
    pooler = await startPgBouncer(direct, { ignore_startup_parameters: `${IGNORED}, options` });
    const { stdout } = await runCli(['apikey', 'list', '--json', '--database', `${pooler.url}?schema=svc_api`]);
    const answer = JSON.parse(stdout) as { code: string; error: string };
    assert.equal(answer.code, 'STORE_UNAVAILABLE');
    assert.match(answer.error, /a connection pooler ignores "schema"/);
  });
});
