import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { runCliHere } from '../support/cli-here.ts';
import { describeOnEach } from '../support/dialects.ts';
import { contentOf } from '../support/direct.ts';
import { finished, runCliWithInput, startCli } from '../support/process.ts';
import { tempStore } from '../support/temp.ts';

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

const ENCODINGS = ['hex', 'base64', 'base64url'] as const;

describeOnEach('a program that imports keys', (dialect) => {
  let database: string;
  beforeEach(() => {
    database = tempStore();
  });
  const names = async () => {
    const { stdout } = await runCliHere(['apikey', 'list', '--json', '--database', database]);
    return (JSON.parse(stdout) as { keys: { name: string }[] }).keys.map(({ name }) => name).toSorted();
  };

  it('keeps the keys if its report is not read, and says so', async () => {
    const child = startCli(['apikey', 'import', '--database', database], { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdout!.destroy();
    child.stdin!.end(textOf(GOOD));
    const { stderr, code } = await finished(child);
    assert.match(
      stderr,
      /^Error: The output could not be written to stdout \(\w+\)\. Imported 3 API keys\.\nCode: OUTPUT_FAILED\n/,
    );
    assert.equal(code, 1);
    assert.deepEqual(await names(), ['By digest', 'CI', 'Short']);
  });

  it('writes no secret anywhere, and no digest but into the store', async () => {
    const bad = { name: 'Bad', secret: `${SECRET}x`, roles: ['BOSS'] };
    const swapped = { name: 'Swapped', sha256: SECRET, description: 'x', roles: ['GUEST'] };
    let said = '';
    for (const lines of [[...GOOD, bad, swapped, `{"name":"Cut","secret":"${SECRET}`, { [SECRET]: 1 }], GOOD]) {
      for (const args of [['--json'], ['--verbose'], []]) {
        const { stdout, stderr } = await runCliWithInput(
          textOf(lines),
          ['apikey', 'import', ...args, '--database', database],
          {
            env: { LOG_LEVEL: 'trace' },
          },
        );
        said += stdout + stderr;
      }
    }
    assert.match(said, /imported "CI"|"status": "imported"/);
    const files =
      dialect === 'sqlite'
        ? globSync(`${database}*`).map((path) => readFileSync(path, 'latin1'))
        : [await contentOf(database)];
    assert.ok(files.some((bytes) => bytes!.includes(DIGEST.toString('base64url'))));
    for (const secret of [SECRET, SHORT]) {
      const digest = createHash('sha256').update(secret).digest();
      for (const text of [said, ...files]) assert.equal(text!.includes(secret), false, secret);
      for (const encoding of ENCODINGS) assert.equal(said.includes(digest.toString(encoding)), false);
    }
    for (const encoding of ENCODINGS) assert.equal(said.includes(DIGEST.toString(encoding)), false);
  });
});
