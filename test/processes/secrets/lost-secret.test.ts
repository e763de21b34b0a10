import assert from 'node:assert/strict';
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestCli, testCli } from '../../support/cli.ts';
import { BIN, cleanEnv, type Finished, finished, runCli } from '../../support/process.ts';
import { isAccepted, keysIn, namesIn } from '../../support/stored.ts';
import { tempFolder } from '../../support/temp.ts';

/** Ways in which writing to stdout fails; `$@` is the command. */
const STDOUTS: Readonly<Record<string, string>> = {
  'is a full device': '"$@" > /dev/full',
  'is closed': '"$@" >&-',
  'is a dead pipe': 'exec 3> >(exec true); wait $!; "$@" >&3',
};

function start(cli: TestCli, script: string, ...args: string[]): ChildProcess {
  const command = [process.execPath, BIN, 'apikey', '--create', '--name', 'Lost', '--roles', 'GUEST', ...args];
  return spawn('bash', ['-c', script, 'bash', ...command], { env: cleanEnv({ SVC_API_DATABASE: cli.database }) });
}

function create(cli: TestCli, script: string, ...args: string[]): Promise<Finished> {
  return finished(start(cli, script, ...args));
}

describe('a secret that cannot be written out', () => {
  for (const [what, script] of Object.entries(STDOUTS)) {
    it(`takes the new key back when stdout ${what}`, async () => {
      const cli = testCli();
      await cli.given('Kept');
      for (const json of [[], ['--json']]) {
        const { stdout, stderr, code } = await create(cli, script, ...json);
        assert.equal(code, 1);
        assert.equal(stdout, '');
        assert.match(
          stderr,
          /^Error: The output could not be written to stdout \(\w+\)\. The key was removed again, because its secret was not delivered\.\nCode: OUTPUT_FAILED\n/,
        );
      }
      assert.deepEqual(await namesIn(cli.database), ['Kept']);
    });

    it(`keeps the old key working when --overwrite fails because stdout ${what}`, async () => {
      const cli = testCli();
      const old = await cli.given('Lost');
      const { code } = await create(cli, script, '--overwrite');
      assert.equal(code, 1);
      assert.ok(await isAccepted(cli.database, old.key));
      assert.deepEqual(
        (await keysIn(cli.database)).map(({ id }) => id),
        [old.id],
      );
    });
  }

  it('keeps the key when stdout is redirected to the null device', async () => {
    const cli = testCli();
    assert.equal((await create(cli, '"$@" > /dev/null')).code, 0);
    assert.deepEqual(await namesIn(cli.database), ['Lost']);
  });

  it('is an error only for secrets: other results may go nowhere', async () => {
    const cli = testCli();
    await cli.given('CI');
    // Write-only, as a shell opens it. "ignore" opens it for reading and writing, like Python's DEVNULL and systemd's
    // null.
    const nowhere = openSync('/dev/null', 'w');
    for (const [args, stdout] of [
      [['list', '--json'], nowhere],
      [['list'], 'ignore'],
      [['--help'], 'ignore'],
      [['show', '--name', 'CI', '--json'], 'ignore'],
      [['create', '--name', 'Two', '--roles', 'GUEST', '--dry-run'], 'ignore'],
      [['export'], 'ignore'],
      [['update', '--name', 'CI', '--description', 'x'], 'ignore'],
      [['delete', '--name', 'CI'], 'ignore'],
    ] as const) {
      const options: SpawnOptions = { stdio: ['ignore', stdout, 'pipe'] };
      const { stderr, code } = await runCli(['apikey', ...args, '--database', cli.database], options);
      assert.deepEqual([stderr, code], ['', 0], args[0]);
    }
    closeSync(nowhere);
    for (const option of ['--version', '--help'])
      assert.equal((await runCli([option], { stdio: ['ignore', 'ignore', 'pipe'] })).code, 0, option);
    assert.deepEqual(await namesIn(cli.database), []);
  });

  it('creates the key when it is stderr that cannot be written', async () => {
    const cli = testCli();
    const { stdout, code } = await create(cli, '"$@" 2> /dev/full');
    assert.match(stdout, /^svc_\w+\n$/);
    assert.equal(code, 0);
    const closed = await create(cli, '"$@" 2>&-', '--overwrite');
    assert.match(closed.stdout, /^svc_\w+\n$/);
    assert.equal(closed.code, 0);
  });
});

describe('the secret on its way', () => {
  it('fills a variable in a shell with nothing else', async () => {
    const cli = testCli();
    const { stdout, code } = await create(cli, 'KEY=$("$@" 2> /dev/null) && printf "[%s]" "$KEY"');
    assert.match(stdout, /^\[svc_\w+\]$/);
    assert.equal(code, 0);
  });

  it('is never in the arguments or the environment of the process, where others could read it', async () => {
    const cli = testCli();
    const fifo = join(tempFolder(), 'stderr');
    // With a full stderr, the command blocks at its note after the secret, so that it can be inspected.
    const script = `mkfifo ${fifo} && exec 2<> ${fifo} && head -c 65536 /dev/zero >&2 && exec "$@"`;
    const child = start(cli, script);
    try {
      const [text] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string];
      const [cmdline, environ] = ['cmdline', 'environ'].map((file) =>
        readFileSync(`/proc/${child.pid}/${file}`, 'utf8'),
      );
      assert.match(text, /^svc_\w+\n$/);
      assert.ok(cmdline?.includes('--create') && environ?.includes(cli.database), 'both could be read');
      assert.ok(!`${cmdline}${environ}`.includes(text.trim().slice(17)));
    } finally {
      child.kill('SIGKILL');
    }
  });
});
