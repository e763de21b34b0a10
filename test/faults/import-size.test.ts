import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, openSync, closeSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountSmallDisk } from '../support/full-disk.ts';
import { BIN, cleanEnv, finished, runCli } from '../support/process.ts';
import { skipUnlessCI } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

const LINES = 40_000;
/** In MiB. In memory, the lines and their results would take twice as much. */
const HEAP = 48;

describe('an import of many lines', () => {
  const folder = tempFolder();
  const file = join(folder, 'keys.jsonl');
  const database = join(folder, 'keys.sqlite');
  before(() => {
    const sha256 = (index: number) => createHash('sha256').update(String(index)).digest('hex');
    const line = (_: unknown, index: number) =>
      JSON.stringify({ name: `Imported key ${index}`, sha256: sha256(index), roles: ['VIEWER'] });
    writeFileSync(file, Array.from({ length: LINES }, line).join('\n'));
  });

  it('is checked and reported on, line by line, in a heap that has no room for all of them', async () => {
    const report = openSync(join(folder, 'report.json'), 'w');
    const args = [`--max-old-space-size=${HEAP}`, BIN, 'apikey', 'import', file, '--dry-run', '--json'];
    const child = spawn(process.execPath, [...args, '--database', database], {
      stdio: ['ignore', report, 'pipe'],
      env: cleanEnv(),
    });
    const { code, stderr } = await finished(child);
    closeSync(report);
    assert.equal(code, 0, stderr);
    const { lines, ...rest } = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as { lines: object[] };
    assert.deepEqual([rest, lines.length], [{ imported: 0, unchanged: 0, failed: 0 }, LINES]);
    assert.equal(existsSync(database), false);
  });

  it('says so if the temporary folder has no space for them, and imports nothing', async function () {
    const disk = mountSmallDisk(2);
    if (!disk) skipUnlessCI(this, 'it cannot mount a file system');
    try {
      const args = ['apikey', 'import', file, '--json', '--dry-run', '--database', database];
      const { stdout, code } = await runCli(args, { env: { TMPDIR: disk.folder, SQLITE_TMPDIR: disk.folder } });
      const { error, code: name } = JSON.parse(stdout) as { error: string; code: string };
      assert.match(error, /^The temporary folder has no room for the import \(SQLITE_FULL\)\. Set TMPDIR/);
      assert.deepEqual([name, code], ['STORE_FULL', 1]);
    } finally {
      disk.unmount();
    }
  });
});
