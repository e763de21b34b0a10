import assert from 'node:assert/strict';
import { changeDirectly, readDirectly, unlockAuditLog } from '../support/direct.ts';
import { describeOnEach, describeOnEachAndRemotely } from '../support/dialects.ts';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { userInfo } from 'node:os';
import stringWidth from 'string-width';
import { type TestCli, testCli } from '../support/cli.ts';
import { cliOnTerminal } from '../support/pty.ts';
import { startCli } from '../support/process.ts';
import { migratedStore, tempFolder } from '../support/temp.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { until } from '../support/until.ts';

interface Entry {
  number: number;
  action: string;
  hash: string;
  address?: string;
  actor: { kind: string; id: string | null; name: string | null };
  apiKey: { id: string; name: string } | null;
}

describeOnEach('apikey log', () => {
  let cli: TestCli;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
    await cli.given('A');
    await cli.given('B');
    await cli.run(['apikey', 'disable', 'A']);
    await cli.run(['apikey', 'delete', 'B']);
  });
  const log = (...args: string[]) => cli.run(['apikey', 'log', ...args]);
  const entriesOf = async (...args: string[]) =>
    (JSON.parse((await log(...args, '--json')).stdout) as { entries: Entry[] }).entries;

  it('shows one line an entry, the newest last, with the actor, the change and the key', async () => {
    const { stdout, stderr, code } = await log();
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'));
    const me = `cli ${userInfo().username}`;
    assert.deepEqual(
      [rows.map(([number, , ...rest]) => [number, ...rest.slice(0, 3)]), stderr, code],
      [
        [
          ['1', me, 'CREATE', 'A'],
          ['2', me, 'CREATE', 'B'],
          ['3', me, 'DISABLE', 'A'],
          ['4', me, 'DELETE', 'B'],
        ],
        '',
        0,
      ],
    );
    assert.match(rows[2]!.at(-1)!, /^disabledAt: - -> \d{4}-.*Z$/);
  });

  it('is filtered and paged', async () => {
    const numbers = async (...args: string[]) => (await entriesOf(...args)).map(({ number }) => number);
    assert.deepEqual(await numbers('--key', 'A'), [1, 3]);
    assert.deepEqual(await numbers('--action', 'delete'), [4]);
    assert.deepEqual(await numbers('--actor', userInfo().username, '--limit', '2'), [3, 4]);
    assert.deepEqual(await numbers('--limit', '2', '--before', '3'), [1, 2]);
    assert.deepEqual(await numbers('--since', '1h', '--until', '2020-01-01T00:00:00Z'), []);
    assert.deepEqual(await log('--key', 'nobody'), {
      stdout: '',
      stderr: 'No entries found.\n',
      code: 0,
      signal: null,
    });
    for (const [code, ...args] of [
      ['INPUT_INVALID', '--limit', 'x'],
      ['INPUT_INVALID', '--limit', '0'],
      ['INPUT_INVALID', '--before', '2026-11-21'],
      ['USAGE', '--wide'],
      ['USAGE', '--verify', '--wide'],
      ['INPUT_INVALID', '--action', 'x'],
      ['INPUT_INVALID', '--since', 'x'],
      ['USAGE', '--verify', '--follow'],
      ['USAGE', '--follow', '--before', '3'],
      ['USAGE', '--follow', '--until', '1h'],
      ['USAGE', '--head', `1:${'0'.repeat(64)}`],
      ['INPUT_INVALID', '--verify', '--head', '1'],
      ['USAGE', '--yes'],
      ['USAGE', '--prune', '--yes'],
      ['USAGE', '--prune', '--until', '1s'],
      ['USAGE', '--prune', '--until', '1s', '--yes', '--key', 'A'],
      ['INPUT_INVALID', '--prune', '--until', '4', '--yes'],
    ] as const) {
      const result = await log(...args, '--json');
      assert.deepEqual([(JSON.parse(result.stdout) as { code: string }).code, result.code], [code, 2]);
    }
  });

  it('takes a date for its start in UTC', async () => {
    const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
    const count = async (...args: string[]) => (await entriesOf(...args)).length;
    assert.equal(await count('--since', day(-1), '--until', day(1)), 4);
    assert.equal(await count('--since', day(1)), 0);
    assert.equal(await count('--until', day(-1)), 0);
    assert.match((await log('--prune', '--until', day(-1), '--yes')).stdout, /^There are no entries/);
    const { stderr } = await log('--since', '2026-02-30');
    assert.match(stderr, /"2026-02-30" is not a time\. There is no day 2026-02-30: 2026-02 has the days 01 to 28\.\n/);
    assert.match((await log('--since', 'May')).stderr, /"May" is not a time\. Write a date, such as/);
  });

  it('names the flags that asked for a page', async () => {
    for (const [flag, value, text] of [
      ['--limit', '0', '--limit is 0; a page has 1 to 500 entries.'],
      ['--limit', '501', '--limit is 501; a page has 1 to 500 entries.'],
      ['--before', '2026-11-21', '--before is "2026-11-21", which is not a number. For a time, pass --until.'],
    ] as const)
      assert.equal((await log(flag, value)).stderr.split('\n')[0], `Error: ${text}`);
  });

  it('has durations in words that can be read', async () => {
    await cli.run(['apikey', 'rotate', 'A', '--grace', '1h']);
    const { stdout } = await log('--action', 'rotate');
    assert.match(stdout, /; rotation: - -> previousPrefix: svc_\w{12}_…, grace: 1h\n$/);
    const [entry] = await entriesOf('--action', 'rotate');
    assert.equal((entry as unknown as { after: { rotation: { grace: number } } }).after.rotation.grace, 3_600_000);
    await cli.run(['apikey', 'rotate', 'A', '--rollback']);
    await cli.run(['apikey', 'rotate', 'A', '--grace', '90m', '--activate', 'on-first-use']);
    assert.match((await log('--limit', '1')).stdout, /rotation: - -> previousPrefix: svc_\w{12}_…, grace: 90m\n$/);
  });

  for (const [columns, head] of [
    [40, 'TIME ACTION KEY'],
    [80, 'NUMBER TIME ACTOR ACTION KEY CHANGES'],
    [200, 'NUMBER TIME ACTOR ACTION KEY CHANGES'],
  ] as const) {
    it(`has a line an entry on a terminal of ${columns} columns, and none is wider; --wide shortens none`, async () => {
      await cli.given('鍵'.repeat(100));
      const onTerminal = async (...args: string[]) => {
        const env = { SVC_API_DATABASE: cli.database };
        const terminal = cliOnTerminal(['apikey', 'log', ...args], env, undefined, { columns });
        assert.equal(await terminal.end(), 0);
        return terminal.screen.trimEnd().split('\n');
      };
      const lines = await onTerminal();
      assert.deepEqual([lines[0]!.split(/ +/).join(' '), lines.length], [head, 6]);
      for (const line of lines) assert.ok(stringWidth(line) <= columns, line);
      assert.match(lines[1]!, /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/);
      const wide = await onTerminal('--wide');
      assert.ok(wide.join('').includes(`CREATE   ${'鍵'.repeat(100)}`), wide.join('\n'));
      assert.doesNotMatch(wide.join('').replaceAll('_…', ''), /…/);
    });
  }

  it('follows what other processes do, one JSON object a line, until it is ended', async () => {
    const child = startCli(['apikey', 'log', '--follow', '--json', '--limit', '1', '--database', cli.database]);
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await lines.next()).value as string) as Entry;
    assert.equal((await next()).number, 4);
    await cli.given('C');
    const { number, action, apiKey } = await next();
    assert.deepEqual([number, action, apiKey!.name], [5, 'CREATE', 'C']);
    await cli.run(['apikey', 'enable', 'A']);
    assert.equal((await next()).action, 'ENABLE');
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'exit'), [null, 'SIGINT']);
  });

  it('ends quietly when the reader of its output ends', async () => {
    const child = startCli(['apikey', 'log', '--follow', '--limit', '1', '--database', cli.database]);
    const ended = once(child, 'exit');
    let errors = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors += text));
    await once(child.stdout!, 'data');
    child.stdout!.destroy();
    await cli.given('C');
    assert.deepEqual([await ended, errors], [[0, null], '']);
  });

  it('verifies the log, or names the first entry that is broken', async () => {
    assert.match(
      (await log('--verify')).stdout,
      new RegExp(
        '^The audit log is intact: 4 entries, the last with the hash ([0-9a-f]{64})\\.\nHead: 4:\\1\n' +
          'The keys match the log: 1 key compared in full\\.\n$',
      ),
    );
    const whole = JSON.parse((await log('--verify', '--json')).stdout) as { hash: string; head: string };
    const { hash, head } = whole;
    assert.deepEqual(whole, {
      whole: true,
      entries: 4,
      hash,
      head: `4:${hash}`,
      keys: { compared: 1, older: 0, differences: [] },
      schemaDifferences: [],
    });
    assert.equal((await log('--verify', '--head', head)).code, 0);
    const other = await log('--verify', '--head', `3:${hash}`);
    assert.deepEqual(
      [other.stdout, other.code],
      ['The audit log is broken: entry 3 is not the one with the given hash.\n', 1],
    );
    const [{ id }] = (await readDirectly(cli.database, "select id from api_keys where name = 'A'")) as [{ id: string }];
    await changeDirectly(cli.database, `update api_keys set roles = '["ADMIN"]' where name = 'A'`);
    const forged = await log('--verify');
    assert.match(forged.stdout, /\nThe keys differ from the log: "A" differs in roles\.\n$/);
    const report = JSON.parse((await log('--verify', '--json')).stdout) as { keys: object };
    assert.deepEqual(
      [report, forged.code],
      [
        {
          ...whole,
          whole: false,
          keys: { compared: 1, older: 0, differences: [{ id, name: 'A', reason: 'differs in roles' }] },
        },
        1,
      ],
    );
    await unlockAuditLog(cli.database);
    await changeDirectly(cli.database, "update audit_log set actor_name = 'somebody' where number = 3");
    const broken = await log('--verify');
    assert.match(
      broken.stdout,
      /^The audit log is broken: entry 3 was changed after it was written\.\nThe schema of the store differs from the one that svc-api creates: /,
    );
    assert.equal(broken.code, 1);
    const json = await log('--verify', '--json');
    const { schemaDifferences, ...said } = JSON.parse(json.stdout) as { schemaDifferences: { difference: string }[] };
    assert.deepEqual([said, json.code], [{ whole: false, broken: 3, reason: 'was changed after it was written' }, 1]);
    // The guards that were removed.
    assert.deepEqual(
      schemaDifferences.map(({ difference }) => difference),
      ['missing', 'missing'],
    );
  });

  it('is keyed by the file that SVC_API_AUDIT_KEY names, and verified with it only', async () => {
    const path = join(tempFolder(), 'audit.key');
    writeFileSync(path, randomBytes(32), { mode: 0o600 });
    const keyed = (...args: string[]) => cli.run(['apikey', ...args], { env: { SVC_API_AUDIT_KEY: path } });
    assert.equal((await keyed('enable', 'A')).code, 0);
    assert.match((await keyed('log', '--verify')).stdout, /^The audit log is intact: 5 entries.*\nHead: 5:hmac:/);
    const without = await log('--verify');
    assert.deepEqual(
      [without.stdout, without.code],
      ['The audit log cannot be verified: entry 5 is keyed: set SVC_API_AUDIT_KEY to the path of its key.\n', 1],
    );
    const refused = await cli.run(['apikey', 'disable', 'A', '--json']);
    assert.deepEqual([(JSON.parse(refused.stdout) as { code: string }).code, refused.code], ['STORE_AUDIT_KEY', 1]);
    chmodSync(path, 0o644);
    const readable = await keyed('enable', 'A');
    assert.match(readable.stderr, /chmod 600/);
  });

  it('prunes entries before a time, with --yes', async () => {
    const none = await log('--prune', '--until', '1d', '--yes');
    assert.deepEqual([none.stdout, none.code], ['There are no entries from before that time.\n', 0]);
    const [, , , fourth] = await entriesOf();
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const pruned = await log('--prune', '--until', tomorrow, '--yes', '--json');
    assert.deepEqual(JSON.parse(pruned.stdout), { deleted: 4, last: { number: 4, hash: fourth!.hash } });
    assert.deepEqual(
      (await entriesOf()).map(({ number, action }) => [number, action]),
      [[5, 'PRUNE']],
    );
    assert.match((await log('--verify')).stdout, /^The audit log is intact: 1 entry/);
    const again = await log('--prune', '--until', tomorrow, '--yes');
    assert.equal(again.stdout, 'Deleted 1 entry of the audit log. It now starts after number 5.\n');
  });

  it('has requests that a server refused, and its counts when it stops', async () => {
    const { key } = await cli.given('Used', { permissions: ['ONLINE:READ_ANY'] });
    const server = await startServe(cli.database);
    const before = Date.now();
    for (let count = 0; count < 3; count += 1) await query(server.url, key, '{ online }');
    await query(server.url, key, '{ info { name } }');
    await query(server.url, 'nonsense', '{ online }');
    const after = Date.now();
    await server.stop();
    const refused = await entriesOf('--action', 'refuse');
    assert.deepEqual(
      refused.map(({ actor, address }) => [actor.kind, actor.name, address]),
      [
        ['KEY', 'Used', '127.0.0.1'],
        ['REQUEST', null, '127.0.0.1'],
      ],
    );
    assert.match((await log('--action', 'refuse')).stdout, /\tkey Used from 127\.0\.0\.1\tREFUSE\t/);
    const shown = JSON.parse((await cli.run(['apikey', 'show', 'Used', '--json'])).stdout) as {
      uses: number;
      lastUsedAt: string;
    };
    const lastUsedAt = Date.parse(shown.lastUsedAt);
    assert.ok(shown.uses === 4 && lastUsedAt >= before && lastUsedAt <= after, JSON.stringify(shown));
    const suggested = await cli.run(['apikey', 'suggest', 'Used']);
    assert.equal(suggested.stdout, '--permissions ONLINE:READ_ANY\n');
    assert.match((await log('--verify')).stdout, /intact/);
  });

  it('loses at most the last seconds of counts when the server is killed, and nothing else', async () => {
    const { key } = await cli.given('Used');
    const server = await startServe(cli.database);
    await query(server.url, key, '{ online }');
    await until(async () => (await readDirectly(cli.database, 'select * from key_uses')).length > 0);
    await server.stop('SIGKILL');
    const shown = await cli.run(['apikey', 'show', 'Used', '--json']);
    assert.equal((JSON.parse(shown.stdout) as { uses: number }).uses, 1);
    const usage = await cli.run(['apikey', 'usage', 'Used', '--json']);
    assert.equal((JSON.parse(usage.stdout) as { totals: { accepted: number } }).totals.accepted, 1);
    assert.match((await log('--verify')).stdout, /intact/);
    assert.equal((await entriesOf('--key', 'Used')).length, 1);
  });
});

describeOnEachAndRemotely('apikey explain and suggest', () => {
  it('say yes with the grant, or no with 4', async () => {
    const cli = testCli();
    await cli.given('CI deploy', { roles: ['VIEWER', 'GUEST'] });
    const can = async (...args: string[]) => {
      const { stdout, stderr, code } = await cli.run(['apikey', 'explain', ...args]);
      return [stdout || stderr, code];
    };
    assert.deepEqual(await can('CI deploy', 'me:read_own'), ['yes: role VIEWER and role GUEST\n', 0]);
    assert.deepEqual(await can('CI deploy', 'DOCKER:UPDATE_ANY'), ['no: none of its grants includes it\n', 4]);
    const { stdout } = await cli.run(['apikey', 'explain', 'CI deploy', 'ME:READ_OWN', '--json']);
    assert.deepEqual(JSON.parse(stdout), {
      allowed: true,
      permission: 'ME:READ_OWN',
      grantedBy: ['VIEWER', 'GUEST'],
      status: 'ACTIVE',
    });
    await cli.run(['apikey', 'disable', 'CI deploy']);
    assert.deepEqual(await can('CI deploy', 'ME:READ_OWN'), [
      'no: granted by role VIEWER and role GUEST, but the key is DISABLED\n',
      4,
    ]);
    assert.equal((await can('Nobody', 'ME:READ_OWN'))[1], 1);
    assert.equal((await can('CI deploy', 'ME:READ'))[1], 2);
    assert.equal((await can('CI deploy'))[1], 2);
  });

  it('suggest nothing where nothing was used, and a line that can be pasted otherwise', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI deploy');
    assert.deepEqual(await cli.run(['apikey', 'suggest', 'CI deploy']), {
      stdout: '',
      stderr: 'API key "CI deploy" was used 0 times, and needed none of its grants. There is nothing to suggest.\n',
      code: 0,
      signal: null,
    });
    const server = await startServe(cli.database);
    await query(server.url, key, '{ online me { name } }');
    await server.stop();
    const { stdout, stderr } = await cli.run(['apikey', 'suggest', 'CI deploy']);
    assert.equal(stdout, '--permissions ME:READ_OWN,ONLINE:READ_ANY\n');
    assert.match(
      stderr,
      /^API key "CI deploy" was used 1 time, for ME:READ_OWN and ONLINE:READ_ANY\.\nRole VIEWER: 1 of 27 permissions used\.\n$/,
    );
    const updated = await cli.run(['apikey', 'update', 'CI deploy', '--no-roles', ...stdout.trim().split(' ')]);
    assert.match(updated.stdout, /^roles: VIEWER -> -\npermissions: - -> ME:READ_OWN, ONLINE:READ_ANY\n$/);
    const { unused } = JSON.parse((await cli.run(['apikey', 'suggest', 'CI deploy', '--json'])).stdout) as {
      unused: string[];
    };
    assert.deepEqual(unused, []);
  });
});
