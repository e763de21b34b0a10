import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { constants as system } from 'node:os';
import { join } from 'node:path';
import { Progress, type Unit } from '../../src/cli/progress.ts';
import { openConnection } from '../../src/store/open.ts';
import { copyStore } from '../../src/features/backup/copy-store.ts';
import { testCli } from '../support/cli.ts';
import { changeDirectly } from '../support/direct.ts';
import { idOf, jsonLines, openTestKeys } from '../support/keys.ts';
import { ROOT } from '../support/process.ts';
import { cliOnTerminal, KEYS, TerminalSession } from '../support/pty.ts';
import { tempFolder, tempStore } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';
import { STORES } from '../support/features.ts';

describe('the progress of a long command', () => {
  /** The drawn and logged texts, each with its time in milliseconds since the start. */
  async function shown(
    errorColumns: number | undefined,
    reports: readonly (readonly [at: number, done: number, total?: number])[],
    unit: Unit = 'keys',
  ): Promise<[number, string][]> {
    const written: [number, string][] = [];
    const start = 1_000_000;
    let now = start;
    const status = (text: string) => void written.push([now - start, text]);
    const progress = new Progress({ canRedraw: errorColumns !== undefined, errorColumns, status }, () => now);
    const report = progress.of('Copying', unit);
    for (const [at, done, total] of reports) {
      now = start + at;
      await report(done, total);
    }
    progress.end();
    return written;
  }

  it('is a bar on a terminal, drawn ten times a second at most, and cleared in the end', async () => {
    const steps = [100, 499, 500, 550, 600, 2000].map((at) => [at, at * 100, 200_000] as const);
    assert.deepEqual(await shown(80, steps), [
      [500, '[########----------------------]  25%  Copying 50,000 of 200,000 keys'],
      [600, '[#########---------------------]  30%  Copying 60,000 of 200,000 keys'],
      [2000, '[##############################] 100%  Copying 200,000 of 200,000 keys'],
      [2000, ''],
    ]);
  });

  it('is a line every five seconds elsewhere', async () => {
    const steps = [600, 4999, 5000, 9999, 10_000].map((at) => [at, at, 30_000] as const);
    assert.deepEqual(await shown(undefined, steps), [
      [5000, 'Copying 5,000 of 30,000 keys (16%).'],
      [10_000, 'Copying 10,000 of 30,000 keys (33%).'],
    ]);
    assert.deepEqual(await shown(undefined, [[5000, 1_250_000]], 'bytes'), [[5000, 'Copying 1.3 MB.']]);
  });

  it('is not shown in the first half second', async () => {
    for (const columns of [80, undefined]) assert.deepEqual(await shown(columns, [[499, 1, 2]]), []);
  });

  it('fits terminals of any width', async () => {
    for (let columns = 1; columns <= 200; columns += 1) {
      for (const [, text] of await shown(columns, [[500, 123_456, 1_000_000_000]])) {
        assert.ok(text.length < columns, `${columns}: ${text}`);
        assert.ok(text.length <= 100, text);
      }
    }
    const [[, narrow]] = (await shown(40, [[500, 1000, 4000]])) as [[number, string]];
    assert.equal(narrow, ' 25%  Copying 1,000 of 4,000 keys');
    const [[, unknown]] = (await shown(40, [[500, 1000]], 'rows')) as [[number, string]];
    assert.equal(unknown, 'Copying 1,000 rows');
  });

  it('is never more than all', async () => {
    const percents = (
      await shown(undefined, [
        [5000, 0, 0],
        [10_000, 7, 5],
      ])
    ).map(([, text]) => text);
    assert.deepEqual(percents, ['Copying 0 of 0 keys (100%).', 'Copying 7 of 5 keys (100%).']);
  });
});

describe('progress is reported', () => {
  const lines = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      name: `Imported ${index}`,
      sha256: index.toString(16).padStart(64, '0'),
      roles: ['GUEST'],
    }));

  it('of keys that are imported, and of the pages that are verified and compared', async () => {
    const { keys, store, database } = await openTestKeys({ asServer: true });
    const done: [string, number, number | undefined][] = [];
    const report = (what: string) => async (count: number, total?: number) => void done.push([what, count, total]);
    await importKeys(keys, jsonLines(...lines(1500)), { onProgress: report('imported') });
    const check = () => keys.audit.check(undefined, { onProgress: report('verified'), onCompared: report('compared') });
    await check();
    // If a key is missing from the log, its page and all later ones are compared after the log was read.
    await changeDirectly(database, `update api_keys set id = '${idOf('unknown')}' where rowid = 250`);
    assert.equal((await check()).comparison?.differences.length, 2);
    const verified = [
      ['verified', 1000, 1500],
      ['verified', 1500, 1500],
    ];
    assert.deepEqual(done, [
      ...[200, 400, 600, 800, 1000, 1200, 1400, 1500].map((count) => ['imported', count, 1500]),
      ...verified,
      ...verified,
      ...[250, 500, 750, 1000, 1250, 1500].map((count) => ['compared', count, undefined]),
    ]);
    await store.close();
  });

  it('of rows that are copied and compared', async () => {
    const cli = testCli();
    const file = join(tempFolder(), 'keys.jsonl');
    writeFileSync(
      file,
      lines(600)
        .map((line) => JSON.stringify(line))
        .join('\n'),
    );
    await cli.run(['apikey', 'import', file]);
    const from = await openConnection({ database: cli.database, features: STORES });
    const to = await openConnection({ database: tempStore(), features: STORES });
    const reports: Record<'copied' | 'compared', number[]> = { copied: [], compared: [] };
    const totals = new Set<number | undefined>();
    const note = (what: keyof typeof reports) => async (count: number, total?: number) => {
      reports[what].push(count);
      totals.add(total);
    };
    await copyStore(from, to, { onCopied: note('copied'), onCompared: note('compared') });
    for (const counts of Object.values(reports)) {
      assert.deepEqual(
        counts,
        counts.toSorted((one, other) => one - other),
      );
      assert.deepEqual([counts.at(-1)], [...totals]);
    }
    await Promise.all([from.close(), to.close()]);
  });
});

/** Clears the current line. */
const CLEARED = '\r\u001b[K';

describe('progress on a real terminal', () => {
  const args = (pipe: string) => ['apikey', 'import', pipe, '--dry-run'];

  /** Starts a command that reads a pipe (`import` by default), and feeds it until progress is shown. */
  async function watched(
    start: (args: readonly string[], env: NodeJS.ProcessEnv) => TerminalSession,
    argsFor: (pipe: string) => readonly string[] = args,
    database = tempStore(),
  ) {
    const pipe = join(tempFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    const session = start(argsFor(pipe), { SVC_API_DATABASE: database });
    const isShown = () => /Reading |Scanning /.test(session.screen);
    await until(() => {
      if (!isShown()) feed(writer, 1);
      return isShown();
    });
    return { session, pipe, writer, finish: () => closeSync(writer) };
  }

  /** Writes lines into a pipe while there is room. @returns how many */
  function feed(writer: number, lines: number): number {
    try {
      return writeSync(writer, '\n'.repeat(lines));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN');
      return 0;
    }
  }

  it('is cleared when the command ends, and nothing of it is on stdout', async () => {
    const stdout = join(tempFolder(), 'stdout');
    const { session, finish } = await watched((command, env) => cliOnTerminal(command, env, stdout));
    finish();
    assert.equal(await session.end(), 0);
    assert.ok(session.raw.startsWith(`${CLEARED}Reading 0.0 MB`));
    // The last text is on a cleared line.
    assert.match(session.raw.split(CLEARED).at(-1)!, /^(?!Reading)[^\r]+\r\n$/);
    assert.doesNotMatch(readFileSync(stdout, 'utf8'), /Reading/);
  });

  it('is cleared by Ctrl-C, which ends the command as ever', async () => {
    const { session } = await watched(cliOnTerminal);
    session.type(KEYS.ctrlC);
    await session.end();
    assert.ok(session.raw.trimEnd().endsWith(CLEARED.trim()));
    assert.equal(session.signal, system.signals.SIGINT);
  });

  it('holds up neither the work nor a signal while the terminal is stopped', async () => {
    const { session, writer } = await watched((command, env) => cliOnTerminal(command, env, '/dev/null'));
    session.type(KEYS.ctrlS);
    // More than the pipe and the program buffer.
    let rest = 500_000;
    await until(() => (rest -= feed(writer, Math.min(rest, 4096))) === 0);
    session.kill('SIGTERM');
    await session.end();
    assert.equal(session.signal, system.signals.SIGTERM);
  });

  it('does not handle a signal that comes while a message waits for the terminal', async () => {
    const cli = testCli();
    const { key, name } = await cli.given('Leaked');
    const { session, writer } = await watched(
      (command, env) => cliOnTerminal(command, env, '/dev/null'),
      (pipe) => ['apikey', 'scan', '--revoke', pipe],
      cli.database,
    );
    session.type(KEYS.ctrlS);
    // The terminal accepts no output from now on.
    writeSync(writer, `${key}\n`);
    await until(async () => (await cli.run(['apikey', 'show', name, '--json'])).stdout.includes('"DISABLED"'));
    session.kill('SIGTERM');
    await session.end();
    assert.equal(session.signal, system.signals.SIGTERM);
  });

  it('is of the bytes of one large input', async () => {
    const cli = testCli();
    await cli.given('Any');
    const { session, writer, finish } = await watched(cliOnTerminal, (pipe) => ['apikey', 'scan', pipe], cli.database);
    await until(() => {
      feed(writer, 4096);
      return /Scanning (?!0\.0 )[\d.]+ MB/.test(session.screen);
    });
    finish();
    assert.equal(await session.end(), 0);
  });

  it("is not drawn into the user's input", async () => {
    const cli = testCli();
    await cli.given('Any');
    for (const command of [
      ['import', '-', '--dry-run'],
      ['scan', '-'],
    ]) {
      const session = cliOnTerminal(['apikey', ...command], { SVC_API_DATABASE: cli.database });
      const start = performance.now();
      await until(() => {
        session.type(KEYS.enter);
        return performance.now() - start > 3000;
      });
      session.type(KEYS.ctrlD);
      assert.equal(await session.end(), 0, session.screen);
      assert.doesNotMatch(session.screen, /Reading|Scanning/);
    }
  });

  it('is not drawn on a terminal that cannot redraw a line, or without a terminal', async () => {
    const script = `import { processTerminal } from ${JSON.stringify(join(ROOT, 'src/cli/terminal.ts'))};
      processTerminal.out('<' + processTerminal.canRedraw + '>');`;
    const redrawsOn = async (TERM: string) => {
      const session = new TerminalSession(
        'env',
        [`TERM=${TERM}`, process.execPath, '--input-type=module', '-e', script],
        {},
      );
      await session.end();
      return session.screen;
    };
    assert.deepEqual([await redrawsOn('xterm'), await redrawsOn('dumb')], ['<true>', '<false>']);
    const piped = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    assert.equal(piped, '<false>');
  });
});
