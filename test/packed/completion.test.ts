import assert from 'node:assert/strict';
import { appendFileSync, chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Host, installHost, ON_CORE, packedFile } from '../support/host.ts';
import { newUser, SHELLS, typedIn, type User } from '../support/shell.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempStore } from '../support/temp.ts';

/** Lines as typed, with the completed words. */
const ROWS: readonly (readonly [string, string])[] = [
  ['acme hell\t', '(hello)'],
  ['acme api\tdisa\t', '(apikey)(disable)'],
  ['acme apikey show CI\\ d\t', '(apikey)(show)(CI deploy)'],
  ['acme apikey list --stat\tdis\t', '(apikey)(list)(--status)(disabled)'],
  ['acme apikey update --permissions BACK\tR\tA\t', '(apikey)(update)(--permissions)(BACKUP:READ_ANY)'],
  ['acme serve --database .config/acme/no\t', '(serve)(--database)(.config/acme/notes.txt)'],
];

describe('completion in a host that has @oclif/plugin-autocomplete', () => {
  let host: Host;
  let user: User;
  before(async () => {
    host = await installHost({ 'svc-api': `file:${packedFile()}`, ...ON_CORE[5] }, ({ oclif }) =>
      oclif.plugins.push('@oclif/plugin-autocomplete'),
    );
    const file = join(host.folder, 'bin/run.js');
    chmodSync(file, 0o755);
    user = newUser({ bin: 'acme', file });
    user.env = { ...user.env, SVC_API_DATABASE: tempStore() };
    mkdirSync(join(user.home, '.config/acme'), { recursive: true });
    appendFileSync(join(user.home, '.config/acme/notes.txt'), '');
    for (const name of ['CI deploy', 'CI test']) {
      const { code } = await host.cli(['apikey', 'create', '--name', name, '--roles', 'GUEST'], user.env);
      assert.equal(code, 0);
    }
    assert.equal((await host.cli(['autocomplete', 'bash'], user.env)).code, 0);
  });

  it('completes our commands and flags, as far as the plugin does', () => {
    const functions = join(user.home, '.cache/acme/autocomplete/functions');
    const script = readFileSync(join(functions, 'bash/acme.bash'), 'utf8');
    assert.match(script, /^apikey:list .*--status/m);
  });

  for (const [shell, { rc }] of Object.entries(SHELLS)) {
    it(`completes names and values by our script, and its own commands as before, in ${shell}`, async function () {
      needsPrograms(this, shell);
      const parts = shell === 'fish' ? [] : [['autocomplete', 'script', shell]];
      const file = join(user.home, rc);
      mkdirSync(dirname(file), { recursive: true });
      for (const args of [...parts, ['apikey', 'autocomplete', shell]]) {
        const { stdout, stderr, code } = await host.cli(args, user.env);
        assert.deepEqual([stderr, code], ['', 0]);
        appendFileSync(file, stdout);
      }
      const words = await typedIn(
        shell,
        user,
        ROWS.map(([line]) => line),
        { bin: 'acme' },
      );
      assert.deepEqual(
        words,
        ROWS.map(([, result]) => result),
      );
    });
  }
});
