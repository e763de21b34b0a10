import assert from 'node:assert/strict';
import { testCli } from '../support/cli.ts';
import { errorText } from '../support/errors.ts';

/** Commands of features, and commands to which features add flags. */
const ROWS: readonly (readonly [command: string, args: readonly string[], error: string])[] = [
  ['apikey list', ['--created-by', 'Ada'], 'Unknown flag: --created-by. Did you mean --parent?'],
  ['restore', ['x', '--bring-back', 'CI'], 'Unknown flag: --bring-back. Did you mean --restore-revoked?'],
  ['restore', ['x', '--without-comparison'], 'Unknown flag: --without-comparison. Did you mean --force?'],
  ['proxy', ['caddy', '--host', 'x'], 'Unknown flag: --host. Did you mean --domain?'],
  ['apikey list', ['--hepl'], 'Unknown flag: --hepl. Did you mean --help?'],
  ['apikey list', ['--limit=1', '--limit=2'], 'Flag --limit can only be specified once. Leave the others out.'],
];

describe('a flag of all that there is that is wrong', () => {
  for (const [command, args, error] of ROWS)
    it(`is refused with what to do: ${command} ${args.join(' ')}`, async () => {
      const cli = testCli();
      const typed = [...command.split(' '), ...args];
      const [plain, json] = await Promise.all([cli.run(typed), cli.run([...typed, '--json'])]);
      assert.deepEqual(plain, { stdout: '', stderr: errorText('USAGE', error, command), code: 2, signal: null });
      assert.deepEqual([JSON.parse(json.stdout), json.stderr, json.code], [{ error, code: 'USAGE' }, '', 2]);
    });
});
