import assert from 'node:assert/strict';
import { describeOnEach } from '../../support/dialects.ts';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCliHere } from '../../support/cli-here.ts';
import { errorText } from '../../support/errors.ts';
import { cliOnTerminal } from '../../support/pty.ts';
import { tempFolder, tempStore } from '../../support/temp.ts';

const SECRET = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc';
const SHORT = 'Pa55w0rd';
const DIGEST = createHash('sha256').update('another secret').digest();
const GOOD = [
  { name: 'CI', secret: SECRET, roles: ['VIEWER'] },
  {
    name: 'By digest',
    sha256: DIGEST.toString('base64url'),
    permissions: ['DOCKER:READ_ANY'],
    expiresAt: '2020-01-01T00:00:00Z',
  },
  { name: 'Short', secret: SHORT, roles: ['GUEST'] },
];
const textOf = (lines: readonly (object | string)[]) =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');

describeOnEach('apikey import', () => {
  let folder: string;
  let database: string;
  beforeEach(() => {
    folder = tempFolder();
    database = tempStore();
  });

  const fromStdin = async (lines: readonly (object | string)[], ...args: string[]) => {
    const command = ['apikey', 'import', ...args, '--database', database];
    const { stdout, stderr, code } = await runCliHere(command, { input: textOf(lines) });
    return { stdout, stderr, code };
  };
  const names = async () => {
    const { stdout } = await runCliHere(['apikey', 'list', '--json', '--database', database]);
    return (JSON.parse(stdout) as { keys: { name: string }[] }).keys.map(({ name }) => name).toSorted();
  };
  const withoutPrefixes = (text: string) => text.replaceAll(/imported-[0-9A-Za-z]{12}/g, 'PREFIX');

  it('reports faults of lines, and the number of imported keys', async () => {
    const { stdout, stderr, code } = await fromStdin(GOOD);
    assert.equal(
      stdout,
      `line 2: EXPIRED It expired at 2020-01-01T00:00:00.000Z.
line 3: SECRET_GUESSABLE The secret is so short that it could be guessed. Rotate the key soon.
`,
    );
    assert.deepEqual([stderr, code], ['Imported 3 API keys.\n', 0]);
    const more = Array.from({ length: 1000 }, (_, index) => ({
      name: `Key ${index}`,
      sha256: index.toString(16).padStart(64, '0'),
      roles: ['GUEST'],
    }));
    assert.deepEqual(await fromStdin(more), { stdout: '', stderr: 'Imported 1000 API keys.\n', code: 0 });
  });

  it('reports on every line with --verbose', async () => {
    const { stdout, stderr, code } = await fromStdin(GOOD, '--verbose');
    assert.equal(
      withoutPrefixes(stdout),
      `line 1: imported "CI" as PREFIX
line 2: imported "By digest" as PREFIX
line 2: EXPIRED It expired at 2020-01-01T00:00:00.000Z.
line 3: imported "Short" as PREFIX
line 3: SECRET_GUESSABLE The secret is so short that it could be guessed. Rotate the key soon.
`,
    );
    assert.deepEqual([stderr, code], ['Imported 3 API keys.\n', 0]);
    assert.deepEqual(await names(), ['By digest', 'CI', 'Short']);
  });

  it('reports in JSON, with a closed list of fields', async () => {
    const { stdout, stderr, code } = await fromStdin(GOOD.slice(0, 2), '--json');
    assert.deepEqual([stderr, code], ['', 0]);
    const { lines, ...rest } = JSON.parse(stdout) as { lines: Record<string, unknown>[] };
    assert.equal(stdout, `${JSON.stringify({ ...rest, lines }, null, 2)}\n`);
    assert.deepEqual(rest, { imported: 2, unchanged: 0, failed: 0 });
    const none = JSON.stringify({ imported: 0, unchanged: 0, failed: 0, lines: [] }, null, 2);
    assert.equal((await fromStdin([], '--json')).stdout, `${none}\n`);
    const { id, prefix, ...first } = lines[0]!;
    assert.match(String(id), /^[0-9a-f-]{36}$/);
    assert.match(String(prefix), /^imported-[0-9A-Za-z]{12}$/);
    assert.deepEqual(first, { line: 1, status: 'imported', name: 'CI', errors: [], warnings: [] });
    assert.deepEqual(lines[1]!['warnings'], [{ code: 'EXPIRED', message: 'It expired at 2020-01-01T00:00:00.000Z.' }]);
    assert.deepEqual(Object.keys(lines[0]!), ['line', 'status', 'name', 'id', 'prefix', 'errors', 'warnings']);
  });

  it('imports nothing when a line breaks a rule, and ends with 2', async () => {
    const lines = [GOOD[0]!, '{', { ...GOOD[2], roles: ['VIEWR'] }, { name: 'a-b', secret: SECRET, sha256: 'x' }];
    const { stdout, stderr, code } = await fromStdin(lines);
    assert.equal(
      stdout,
      `line 2: INPUT_INVALID The line is not a JSON object. Write each key as one object on a line of its own.
line 3: ROLE_INVALID "VIEWR" is not a role. Did you mean VIEWER?
line 4: SECRET_INVALID A key needs either its secret or the secret's sha256. Both are given.
`,
    );
    assert.deepEqual([stderr, code], [errorText('INPUT_INVALID', 'Nothing was imported: 3 of 4 lines failed.'), 2]);
    const json = await fromStdin(lines, '--json');
    const { lines: reported, ...rest } = JSON.parse(json.stdout) as { lines: { status: string }[] };
    assert.deepEqual(rest, {
      error: 'Nothing was imported: 3 of 4 lines failed.',
      code: 'INPUT_INVALID',
      imported: 0,
      unchanged: 0,
      failed: 3,
    });
    assert.deepEqual(
      reported.map(({ status }) => status),
      ['not imported', 'failed', 'failed', 'failed'],
    );
    assert.deepEqual([json.stderr, json.code, await names()], ['', 2, []]);
    assert.equal((await fromStdin(lines, '--verbose')).stdout, `line 1: not imported "CI"\n${stdout}`);
  });

  it('goes on where it ended, and says how many keys were there', async () => {
    await fromStdin(GOOD.slice(0, 1));
    const trial = await fromStdin(GOOD.slice(0, 2), '--dry-run');
    assert.equal(
      trial.stderr,
      'Nothing was imported: this was a dry run. 1 API key can be imported. 1 key is unchanged.\n',
    );
    const { stdout, stderr, code } = await fromStdin(GOOD, '--verbose');
    assert.match(stdout, /^line 1: unchanged "CI" as imported-\w{12}\nline 2: imported "By digest" as/);
    assert.deepEqual([stderr, code], ['Imported 2 API keys. 1 key is unchanged.\n', 0]);
    const json = JSON.parse((await fromStdin(GOOD, '--json')).stdout) as { lines: { status: string }[] };
    const { lines, ...rest } = json;
    assert.deepEqual(rest, { imported: 0, unchanged: 3, failed: 0 });
    assert.deepEqual(
      lines.map(({ status }) => status),
      ['unchanged', 'unchanged', 'unchanged'],
    );
    assert.deepEqual(await names(), ['By digest', 'CI', 'Short']);
  });

  it('ends with 1 when lines only collide with the store or with each other, and with 2 when a rule is broken, too', async () => {
    await fromStdin(GOOD);
    const again = await fromStdin([{ ...GOOD[0], roles: ['GUEST'] }]);
    assert.deepEqual(again, {
      stdout:
        'line 1: NAME_TAKEN An API key named "CI" already exists.\nline 1: SECRET_TAKEN The API key "CI" already has this secret.\n',
      stderr: errorText('NAME_TAKEN', 'Nothing was imported: 1 of 1 line failed.'),
      code: 1,
    });
    assert.equal((await fromStdin([{ ...GOOD[0], name: 'a-b' }, GOOD[0]!])).code, 2);
    const twice = { name: 'Twice', sha256: 'a'.repeat(64), roles: ['GUEST'] };
    assert.equal((await fromStdin([twice, twice])).code, 1);
  });

  it('imports nothing with --dry-run', async () => {
    await runCliHere(['apikey', 'create', '--name', 'Other', '--roles', 'GUEST', '--database', database]);
    const { stdout, stderr, code } = await fromStdin(GOOD.slice(0, 1), '--dry-run');
    assert.deepEqual([stdout, code], ['', 0]);
    assert.equal(stderr, 'Nothing was imported: this was a dry run. 1 API key can be imported.\n');
    assert.deepEqual(await names(), ['Other']);
  });

  it('reads a file, stdin by "-", and nothing', async () => {
    const file = join(folder, 'keys.jsonl');
    writeFileSync(file, textOf(GOOD.slice(0, 1)));
    assert.equal(
      (await runCliHere(['apikey', 'import', file, '--database', database])).stderr,
      'Imported 1 API key.\n',
    );
    assert.equal((await fromStdin(GOOD.slice(1, 2), '-')).stderr, 'Imported 1 API key.\n');
    assert.deepEqual(await names(), ['By digest', 'CI']);
    assert.deepEqual(await fromStdin([]), { stdout: '', stderr: 'The input has no keys.\n', code: 0 });
    const empty = JSON.parse((await fromStdin([], '--json')).stdout) as object;
    assert.deepEqual(empty, { imported: 0, unchanged: 0, failed: 0, lines: [] });
  });

  it('reports faults of the file', async () => {
    for (const [path, reason] of [
      [join(folder, 'none.jsonl'), 'ENOENT'],
      [folder, 'EISDIR'],
    ] as const) {
      const { stdout, stderr, code } = await runCliHere(['apikey', 'import', path, '--json', '--database', database]);
      const answer = { error: `"${path}" can't be read (${reason}). Check the path.`, code: 'INPUT_INVALID' };
      assert.deepEqual([JSON.parse(stdout), stderr, code], [answer, '', 2]);
    }
  });

  it('does not wait in silence at a terminal', async () => {
    const terminal = cliOnTerminal(['apikey', 'import', '--database', database], {});
    assert.equal(await terminal.end(), 2);
    assert.match(terminal.screen, /Error: There is no input\. Pass a file, pipe the lines to stdin, or pass "-"/);
  });
});
