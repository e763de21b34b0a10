import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from 'pg';
import { TRUST_MS } from '../../../src/store/postgres/postgres-listener.ts';
import { testCli } from '../../support/cli.ts';
import { describeOn, describeOnEach } from '../../support/dialects.ts';
import { readDirectly } from '../../support/direct.ts';
import { type PostgresServer, startPostgresServer } from '../../support/postgres.ts';
import { cleanEnv, startCli } from '../../support/process.ts';
import { migratedStore, tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { newNoticeSecret, Receiver, stopReceivers } from '../../support/webhook.ts';

const NOTICE_SECRET = newNoticeSecret();
const REPLACED = 'a worker exited and will be replaced';

/** A log line; `waitMs` is set when a worker will be replaced. */
interface Logged {
  pid: number;
  msg: string;
  waitMs?: number;
}

/** `serve` with workers, and the log of its processes. */
async function startWorkers(database: string, ...args: string[]) {
  const env = cleanEnv({ LOG_LEVEL: 'info', SVC_API_NOTICES_SECRET: NOTICE_SECRET });
  const child = startCli(['serve', '--database', database, ...args], { env });
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const logged: Logged[] = [];
  let changed = () => {};
  createInterface({ input: child.stderr! }).on('line', (line) => {
    logged.push(line.startsWith('{') ? (JSON.parse(line) as Logged) : { pid: 0, msg: line });
    changed();
  });
  let printed = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    changed();
  });
  const until = async (met: () => boolean) => {
    while (!met()) await Promise.race([new Promise<void>((resolve) => (changed = resolve)), ended]);
  };
  const listening = () => new Set(logged.filter(({ msg }) => msg === 'listening').map(({ pid }) => pid));
  return { child, ended, logged, listening, until, printed: () => printed };
}

async function ask(url: string, key: string, connection = 'close'): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection };
  const { status } = await fetch(`${url}/graphql`, { method: 'POST', headers, body: '{"query":"{ me { name } }"}' });
  return status;
}

describeOnEach('serve --workers', (dialect) => {
  it('answers on one port in several processes, says the address once, and stops all of them', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI');
    const server = await startWorkers(cli.database, '--workers', '2', '--port', '0');
    await server.until(() => server.listening().size === 2 && server.printed() !== '');
    const [, url] = /^Listening on (http:\S+)\n$/.exec(server.printed())!;
    const answers = async () => {
      const all = [];
      for (let time = 0; time < 12; time += 1) all.push(await ask(url!, key));
      return [...new Set(all)];
    };
    assert.deepEqual(await answers(), [200]);
    await cli.run(['apikey', 'delete', 'CI']);
    // On PostgreSQL, the notification arrives some milliseconds later.
    if (dialect === 'postgres') await until(async () => !(await answers()).includes(200));
    const refusals = await answers();
    // The reason is only given to a limited number of requests from one address.
    assert.ok(
      refusals.every((status) => status === 401 || status === 429),
      'each of them refuses it',
    );
    server.child.kill('SIGTERM');
    assert.deepEqual(await server.ended, [0, null]);
    await assert.rejects(ask(url!, key));
    for (const pid of server.listening()) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    const shown = await cli.run(['apikey', 'log', '--action', 'refuse', '--json']);
    assert.ok((JSON.parse(shown.stdout) as { entries: unknown[] }).entries.length > 0, 'what they counted is written');
  });

  it('accepts, of a key with a limit, no more in all processes than in one', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI', { limits: ['30/d'] });
    const server = await startWorkers(cli.database, '--workers', '3', '--port', '0');
    await server.until(() => server.listening().size === 3 && server.printed() !== '');
    const url = server.printed().slice('Listening on '.length).trim();
    const statuses = await Promise.all(Array.from({ length: 60 }, () => ask(url, key)));
    const admitted = statuses.filter((status) => status === 200).length;
    assert.equal(statuses.filter((status) => status === 429).length, 60 - admitted, statuses.join());
    // The leases of two other workers can be missing, each a tenth of the limit.
    assert.ok(admitted <= 30 && admitted >= 24, `${admitted}`);
    server.child.kill('SIGTERM');
    assert.deepEqual(await server.ended, [0, null]);
  });

  if (dialect === 'postgres') return;

  it('replaces one that is killed, while the others answer', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI');
    const server = await startWorkers(cli.database, '--workers', '2', '--port', '0');
    await server.until(() => server.listening().size === 2 && server.printed() !== '');
    const url = server.printed().slice('Listening on '.length).trim();
    const [victim] = server.listening();
    process.kill(victim!, 'SIGKILL');
    assert.equal(await ask(url, key), 200);
    await server.until(() => server.listening().size === 3);
    assert.ok(server.logged.some(({ msg }) => msg === REPLACED));
    assert.equal(await ask(url, key), 200);
    server.child.kill('SIGINT');
    assert.deepEqual(await server.ended, [0, null]);
  });

  it('replaces all of them at once, without waiting as for one that fails again', async () => {
    const cli = testCli();
    await cli.given('CI');
    const server = await startWorkers(cli.database, '--workers', '2', '--port', '0');
    await server.until(() => server.listening().size === 2);
    for (const pid of server.listening()) process.kill(pid, 'SIGKILL');
    const waits = () => server.logged.filter(({ msg }) => msg === REPLACED).map(({ waitMs }) => waitMs);
    await server.until(() => server.listening().size >= 3 && waits().length >= 2);
    assert.deepEqual(waits(), [0, 0]);
    server.child.kill('SIGINT');
    assert.deepEqual(await server.ended, [0, null]);
  });

  it('leaves no worker behind when the first process is killed', async () => {
    const cli = testCli();
    const server = await startWorkers(cli.database, '--workers', '2', '--port', '0');
    await server.until(() => server.listening().size === 2);
    server.child.kill('SIGKILL');
    await server.ended;
    const isThere = (pid: number) => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    await until(() => ![...server.listening()].some(isThere));
  });

  it('says once what keeps it from listening', async () => {
    const cli = testCli();
    const first = await startWorkers(cli.database, '--port', '0');
    await first.until(() => first.printed() !== '');
    const [, port] = /:(\d+)\n$/.exec(first.printed())!;
    const { code, stderr } = await cli.runProcess(['serve', '--workers', '3', '--port', port!]);
    assert.deepEqual([code, stderr.match(/port \d+ is taken/g)?.length], [1, 1], stderr);
    first.child.kill();
    await first.ended;
    for (const wrong of ['0', '257', 'many', '-1', '']) {
      const refused = await cli.run(['serve', '--workers', wrong]);
      assert.deepEqual([refused.code, /--workers is/.test(refused.stderr)], [2, true], wrong);
    }
  });
});

describeOn('postgres', 'the workers of a machine', () => {
  let cli: ReturnType<typeof testCli>;
  let server: Awaited<ReturnType<typeof startWorkers>>;
  let url: string;
  let name: string;
  before(async () => {
    const database = new URL(await migratedStore());
    name = database.searchParams.get('schema')!;
    database.searchParams.set('application_name', name);
    cli = testCli(database.href);
    server = await startWorkers(cli.database, '--workers', '3', '--port', '0');
    await server.until(() => server.listening().size === 3 && server.printed() !== '');
    [, url = ''] = /^Listening on (http:\S+)\n$/.exec(server.printed())!;
  });
  after(async () => {
    server.child.kill('SIGCONT');
    server.child.kill();
    await server.ended;
  });
  /** The last events of all processes' connections. */
  const connections = async () =>
    (await readDirectly(cli.database, `select query from pg_stat_activity where application_name = '${name}'`)).map(
      ({ query }) => String(query),
    );
  /** Answers on new connections, each from any worker. */
  const answers = async (key: string) => {
    const all = [];
    for (let time = 0; time < 30; time += 1) all.push(await ask(url, key));
    return all;
  };

  it('hear of changes by one connection, and have two while idle', async () => {
    const { key } = await cli.given('CI');
    assert.deepEqual([...new Set(await answers(key))], [200]);
    await until(async () => {
      const [first = '', second = '', ...others] = (await connections()).toSorted();
      return others.length === 0 && first.startsWith('listen svc_api_changed_keys') && second.includes('followers');
    });
    // Cached keys keep working until they change. Some workers have not been asked yet.
    await until(async () => {
      await until(async () => (await connections()).length === 2);
      assert.deepEqual([...new Set(await answers(key))], [200]);
      return (await connections()).every((query) => !query.includes('digest'));
    });
    await cli.run(['apikey', 'delete', 'CI']);
    await until(async () => !(await answers(key)).includes(200));
  });

  it('trust nothing that they remember once they hear nothing of the first process', async () => {
    const [{ key: kept }, { key: deleted }] = [await cli.given('Kept'), await cli.given('Deleted')];
    for (const key of [kept, deleted]) assert.deepEqual([...new Set(await answers(key))], [200]);
    server.child.kill('SIGSTOP');
    const stopped = performance.now();
    await cli.run(['apikey', 'delete', 'Deleted']);
    await until(async () => {
      const begun = performance.now();
      const all = await answers(deleted);
      if (all.includes(200)) assert.ok(begun - stopped < TRUST_MS, `accepted ${begun - stopped} ms later`);
      return !all.includes(200);
    });
    assert.ok((await answers(kept)).every((status) => status === 200 || status === 429));
  });
});

interface Activity {
  transactions: number;
  connections: number;
  /** The time of the last heartbeat in whole seconds, because the server handles a statement in several timed steps. */
  heartbeat: string | null;
  seconds: number;
}
const ACTIVITY = `select (xact_commit + xact_rollback)::int as transactions, numbackends as connections,
    (select date_trunc('second', max(query_start))::text from pg_stat_activity where query ~ '^(with gone|update followers)')
      as heartbeat, extract(epoch from clock_timestamp())::float as seconds
  from pg_stat_database where datname = 'postgres'`;

describeOnEach('the workers of a machine tell a webhook', (dialect) => {
  let database: PostgresServer | undefined;
  let server: Awaited<ReturnType<typeof startWorkers>>;
  let receiver: Receiver;
  let cli: ReturnType<typeof testCli>;
  before(async () => {
    if (dialect === 'postgres') database = await startPostgresServer();
    cli = testCli(database?.url ?? (await migratedStore()));
    receiver = await Receiver.start(NOTICE_SECRET);
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, `notices: { url: "${receiver.url}" }\n`);
    server = await startWorkers(cli.database, '--workers', '3', '--port', '0', '--config', config);
    await server.until(() => server.listening().size === 3);
  });
  after(async () => {
    server.child.kill();
    await server.ended;
    await stopReceivers();
    await database?.stop();
  });
  const told = () => receiver.received.map(({ data }) => data['name']);

  it('of each change once', async () => {
    for (const name of ['First', 'Second']) {
      await cli.given(name);
      await until(() => told().includes(name));
    }
    assert.deepEqual(told(), ['First', 'Second']);
  });

  if (dialect === 'postgres')
    it('with less than a transaction a second, by a few connections, while there is nothing to tell', async () => {
      // Queries another database, so that they are not counted.
      const connectionString = Object.assign(new URL(database!.url), { pathname: '/template1' }).href;
      const observer = new Client({ connectionString });
      await observer.connect();
      const look = async () => (await observer.query<Activity>(ACTIVITY)).rows[0]!;
      try {
        const heartbeats = new Set<string>();
        let [first, last] = [await look(), await look()];
        await until(async () => {
          last = await look();
          // A connection adds its counts when it closes.
          if (last.connections > 3) heartbeats.clear();
          if (heartbeats.add(last.heartbeat!).size < 3) first = last;
          return heartbeats.size > 12;
        });
        const [transactions, seconds] = [last.transactions - first.transactions, last.seconds - first.seconds];
        // Once a minute, it looks for keys that expire or are often refused.
        assert.ok(transactions <= seconds + 7, `${transactions} transactions in ${seconds} s`);
      } finally {
        await observer.end();
      }
    });

  it('after a rest, also once the one that did so is killed', async () => {
    const [first] = server.listening();
    process.kill(first!, 'SIGKILL');
    await server.until(() => server.logged.some(({ msg }) => msg === REPLACED));
    await cli.given('Third');
    await until(() => told().includes('Third'));
  });
});
