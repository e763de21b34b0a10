import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { UNIT_MS } from '../../../src/keys/basics/time.ts';
import { openKeys } from '../../../src/service/open-keys.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { describeOn, describeOnEach } from '../../support/dialects.ts';
import { changeDirectly } from '../../support/direct.ts';
import { authenticate, openTestKeys } from '../../support/keys.ts';

const AHEAD = 60 * UNIT_MS.d;

interface Repair {
  needed: boolean;
  repaired: boolean;
  entries: { number: number; action: string }[];
  keys: {
    name: string;
    before: { expiresAt: string | null };
    after: { createdAt: string; expiresAt: string | null };
  }[];
}

describeOnEach('doctor --repair clock', () => {
  let cli: TestCli;
  beforeEach(async () => {
    cli = testCli();
    await cli.given('before');
  });
  const repair = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli.run(['doctor', '--repair', 'clock', '--json', ...args]);
    assert.equal(code, 0, stderr || stdout);
    return JSON.parse(stdout) as Repair;
  };
  const clockFinding = async () => {
    const { stdout } = await cli.run(['doctor', '--json']);
    const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; remedy: string | null }[] };
    return checks.find(({ check }) => check === 'CLOCK')!;
  };
  /** What a program does whose clock is ahead. */
  const whileAhead = async (work: (test: Awaited<ReturnType<typeof openTestKeys>>) => Promise<void>) => {
    const test = await openTestKeys({ database: cli.database });
    test.time.now = Date.now() + AHEAD;
    await work(test);
    await test.keys.finishActivity();
    await test.store.close();
  };

  it('finds nothing where the clock was always right', async () => {
    const { needed, repaired, entries, keys } = await repair('--yes');
    assert.deepEqual({ needed, repaired, entries, keys }, { needed: false, repaired: false, entries: [], keys: [] });
  });

  it('lists what was written while it was ahead, and moves it back: what expires works again for as long as was meant', async () => {
    const secrets: string[] = [];
    await whileAhead(async ({ keys }) => {
      for (const input of [{ name: 'hour', expiresIn: '1h' }, { name: 'ever' }])
        secrets.push((await keys.create({ ...input, roles: ['GUEST'] }, OPERATOR)).key);
      for (const secret of secrets) await authenticate(keys, secret);
    });
    const day = (
      await cli.run(['apikey', '--create', '--name', 'day', '--roles', 'GUEST', '--expires-in', '1d', '--json'])
    ).stdout;
    assert.notEqual(day, '');
    const found = await clockFinding();
    assert.deepEqual(
      [found.status, found.remedy],
      ['failure', 'Set the clock. If it is right, run "svc-api doctor --repair clock".'],
    );
    const server = await openKeys({ database: cli.database });
    const planned = await repair('--dry-run');
    assert.deepEqual([planned.needed, planned.repaired], [true, false]);
    assert.equal((await clockFinding()).status, 'failure');
    const done = await repair('--yes');
    assert.deepEqual(done.keys.map(({ name }) => name).toSorted(), ['day', 'ever', 'hour']);
    assert.deepEqual(
      done.entries.map(({ action }) => action),
      ['CREATE', 'CREATE', 'CREATE'],
    );
    const left = (name: string) =>
      Date.parse(done.keys.find((key) => key.name === name)!.after.expiresAt!) - Date.now();
    assert.ok(left('hour') > 30 * UNIT_MS.m && left('hour') <= UNIT_MS.h, `${left('hour')}`);
    assert.ok(left('day') > 23 * UNIT_MS.h && left('day') <= UNIT_MS.d, `${left('day')}`);
    for (const { after } of done.keys) assert.ok(Date.parse(after.createdAt) <= Date.now());
    // A program that was running agrees, and so does one that is started now.
    const create = () => server.create({ name: 'later', roles: ['GUEST'] }, OPERATOR);
    await assert.rejects(create(), { code: 'STORE_CLOCK', message: /was repaired meanwhile\. Try again\.$/ });
    await create();
    const fresh = await openKeys({ database: cli.database });
    for (const keys of [server, fresh]) {
      assert.ok(Math.abs(keys.clock() - Date.now()) <= UNIT_MS.m);
      for (const secret of secrets) assert.ok('principal' in (await authenticate(keys, secret)));
      await keys.close();
    }
    assert.equal((await repair('--yes')).needed, false);
    const { code, stdout } = await cli.run(['apikey', 'log', '--verify', '--json']);
    assert.equal(code, 0, stdout);
    const log = await cli.run(['apikey', 'log', '--action', 'clock-repair', '--json']);
    assert.equal((JSON.parse(log.stdout) as { entries: object[] }).entries.length, 1);
  });

  it('accepts the time of a store that was not used for longer than is plausible', async () => {
    await changeDirectly(cli.database, `update clock set latest = latest - ${400 * UNIT_MS.d}`);
    const refused = await cli.run(['apikey', '--create', '--name', 'B', '--roles', 'GUEST', '--json']);
    assert.equal((JSON.parse(refused.stdout) as { code: string }).code, 'STORE_CLOCK');
    assert.equal((await clockFinding()).status, 'failure');
    const { needed, repaired, keys } = await repair('--yes');
    assert.deepEqual({ needed, repaired, keys }, { needed: true, repaired: true, keys: [] });
    await cli.create('B');
    assert.equal((await clockFinding()).status, 'ok');
  });

  it('asks, and without a terminal needs --yes', async () => {
    await changeDirectly(cli.database, `update clock set latest = latest + ${AHEAD}`);
    const { code, stderr } = await cli.run(['doctor', '--repair', 'clock']);
    assert.equal(code, 2);
    assert.match(stderr, /Pass --yes to repair, or --dry-run/);
    const misplaced = await cli.run(['doctor', '--yes']);
    assert.equal(misplaced.code, 2);
    assert.match(misplaced.stderr, /--yes belongs to --repair\. Leave it out\./);
  });
});

describeOn('sqlite', 'a command under a clock that is a year ahead', () => {
  it('changes nothing, so that keys that expire work for all afterwards', async () => {
    const cli = testCli();
    const { stdout } = await cli.runProcess(
      'apikey --create --name day --roles GUEST --expires-in 1d --json'.split(' '),
    );
    const { key } = JSON.parse(stdout) as { key: string };
    const ahead = `const { now } = Date; Date.now = () => now() + ${365 * UNIT_MS.d};`;
    const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(ahead)}` };
    const refused = await cli.runProcess(['apikey', '--create', '--name', 'B', '--roles', 'GUEST', '--json'], { env });
    assert.equal(refused.code, 1);
    assert.equal((JSON.parse(refused.stdout) as { code: string }).code, 'STORE_CLOCK');
    const keys = await openKeys({ database: cli.database });
    assert.ok('principal' in (await authenticate(keys, key)));
    await keys.close();
  });

  it('is repaired by the program, which says what it moves', async () => {
    const cli = testCli();
    await cli.given('before');
    const ahead = `const { now } = Date; Date.now = () => now() + ${AHEAD};`;
    const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(ahead)}` };
    await cli.runProcess('apikey --create --name late --roles GUEST --expires-in 1d'.split(' '), { env });
    const { code, stdout, stderr } = await cli.runProcess('doctor --repair clock --yes'.split(' '));
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Later times in the audit log, which keeps them: 1 entry\n {2}2 {2}\S+ {2}CREATE "late"$/m);
    assert.match(
      stdout,
      /^Keys with times that move back by 60 days: 1\n {2}"late" \(\S+\): expires \S+ \(in 1 day\), not /m,
    );
    assert.match(stdout, /^Repaired\.\n$/m);
    assert.equal((await cli.runProcess(['doctor'])).code, 0);
  });
});
