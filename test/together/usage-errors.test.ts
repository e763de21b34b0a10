import assert from 'node:assert/strict';
import { testCli } from '../support/cli.ts';
import { errorText } from '../support/errors.ts';
import { runProgramHere } from '../support/program-here.ts';

describe('an argument that is wrong', () => {
  for (const [command, args, error] of [
    ['autocomplete', ['powershell'], '"powershell" is not one of bash, zsh or fish.'],
    ['autocomplete', ['fsh'], '"fsh" is not one of bash, zsh or fish. Did you mean zsh or fish?'],
    ['apikey scan', [], 'Name what to scan: files, folders, - for stdin, or a report with --report.'],
  ] as const)
    it(`is refused with what to do: ${command} ${args.join(' ')}`, async () => {
      const cli = testCli();
      const typed = [...command.split(' '), ...args];
      const [plain, json] = await Promise.all([cli.run(typed), cli.run([...typed, '--json'])]);
      assert.deepEqual(plain, { stdout: '', stderr: errorText('USAGE', error, command), code: 2, signal: null });
      assert.deepEqual([JSON.parse(json.stdout), json.stderr, json.code], [{ error, code: 'USAGE' }, '', 2]);
    });

  it('is refused as one JSON object by a command that has no --json', async () => {
    const { stdout, stderr, code } = await runProgramHere(['apikey', 'exec', '--json', '--', 'true']);
    const { error, ...rest } = JSON.parse(stdout) as { error: string };
    assert.match(error, /^Unknown flags?: /);
    assert.deepEqual([rest, stderr, code], [{ code: 'USAGE' }, '', 2]);
  });
});
