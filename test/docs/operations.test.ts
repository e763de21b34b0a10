import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { BIN, cleanEnv, finished, ROOT } from '../support/process.ts';
import { keysIn } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';

const [, section = ''] = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8').split('## A key for one command\n');
const blocks = Array.from(section.matchAll(/^```sh\n(.*?)^```$/gms), (match) => match[1]!);

describe('a key for one command, as docs/operations.md has it', () => {
  for (const [index, name] of ['exec', 'the shell trap that it replaces'].entries()) {
    it(`works, passes the exit code, and leaves no key: ${name}`, async () => {
      const folder = tempFolder();
      const database = join(folder, 'keys.sqlite');
      mkdirSync(join(folder, 'bin'));
      symlinkSync(BIN, join(folder, 'bin/svc-api'));
      writeFileSync(
        join(folder, 'report.sh'),
        '#!/bin/sh\nsvc-api apikey list | cut -f 2,3\necho "$API_KEY"\nexit 3\n',
        { mode: 0o755 },
      );
      const path = [join(folder, 'bin'), dirname(process.execPath), process.env['PATH']].join(delimiter);
      const shell = spawn('sh', ['-c', blocks[index]!], {
        cwd: folder,
        env: cleanEnv({ PATH: path, SVC_API_DATABASE: database }),
      });
      const { stdout, code } = await finished(shell);
      assert.match(stdout, /^ACTIVE\tVIEWER\nsvc_\w{62}\n/);
      assert.equal(code, 3);
      assert.deepEqual(await keysIn(database), []);
    });
  }
});
