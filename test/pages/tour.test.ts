import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { blocksOf } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { TerminalSession } from '../support/pty.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

/** Shells without start-up files that record the status of each command. */
const SHELLS = [
  {
    name: 'bash',
    args: ['--norc', '--noprofile', '-i'],
    hook: `PROMPT_COMMAND='echo $? >> "$STATUSES"'`,
  },
  { name: 'zsh', args: ['-f', '-i'], hook: 'precmd() { echo $? >> "$STATUSES" }' },
];
type Shell = (typeof SHELLS)[number];
/** The timeout of a whole tour on a busy machine. */
const WHOLE_TOUR_MS = 200_000;
/** The sequences that a terminal sends around a pasted text (bracketed paste). */
const [PASTE, PASTED] = ['\u001b[200~', '\u001b[201~'];

interface Typed {
  /** All terminal output. */
  screen: string;
  /** The exit codes of the commands. */
  statuses: string[];
}

/** Types as a user in a new home until the shell answers, and fails if processes are left. */
async function typeAll(blocks: readonly string[], shell: Shell, way: 'at once' | 'pasted'): Promise<Typed> {
  const [home, temp] = [tempFolder(), join(tempFolder(), 'tmp')];
  mkdirSync(temp);
  const log = join(tempFolder(), 'statuses');
  const path = [process.env['PATH'], join(ROOT, 'test/support/bin')].join(delimiter);
  const env = { HOME: home, TMPDIR: temp, PATH: path, PS1: 'READY ', PS2: 'READY ', STATUSES: log };
  const terminal = new TerminalSession(shell.name, shell.args, env);
  try {
    await terminal.answer('READY', `${shell.hook}\r`);
    await terminal.see('READY');
    const text = blocks.join('').replaceAll('\n', '\r');
    terminal.type(way === 'pasted' ? `${PASTE}${text.slice(0, -1)}${PASTED}\r` : text);
    terminal.type('echo "[$SVC_API_DATABASE$KEY]" all "typed"\r');
    await terminal.see('[] all typed', WHOLE_TOUR_MS);
    assert.throws(() => process.kill(serverOn(terminal), 0), /ESRCH/, 'the server is stopped');
    assert.deepEqual(readdirSync(temp), [], 'the folder is removed');
    assert.equal(existsSync(join(home, '.local')), false, 'the user’s own store is not touched');
    return { screen: terminal.screen, statuses: readFileSync(log, 'utf8').trim().split('\n') };
  } finally {
    terminal.close();
    // Finds no process, unless the test fails.
    spawnSync('kill', [String(serverOn(terminal))]);
  }
}

/** The background process that the shell reports. */
const serverOn = (terminal: TerminalSession) => Number(/^\[1\] (\d+)$/m.exec(terminal.screen)?.[1]);

const BLOCKS = blocksOf('docs/tour.md');
/** Statuses other than 0: documented for apply --dry-run. */
const FAILING = ['2'];
const OUTPUTS = [
  /Created API key "CI deploy" .* with roles VIEWER/,
  /"key": "svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}",\n {2}"name": "Deploy bot"/,
  /API key "Contractor" is disabled/,
  /^Contractor\b.*\bGUEST\b/m,
  /Plan: 1 to create, 1 to update, 0 to delete, 0 unchanged\./,
  /Applied: 1 created, 1 updated, 0 deleted, 0 unchanged\./,
  /Applied: 0 created, 0 updated, 0 deleted, 2 unchanged\./,
  /"extensions":\{"code":"FORBIDDEN","missing":\["API_KEY:READ_OWN"\]\}.*"data":\{"me":\{"name":"CI deploy","roles":\["VIEWER"\]\}/,
  /"description":"Temporary, for the command \\"sh\\"\. Deleted when it ends\.","expiresAt":"/,
  /Rotated API key "CI deploy"/,
  /\bROTATE\b/,
  /yes: role VIEWER/,
  /Replaced API key "CI deploy"/,
  /\{"errors":\[\{"message":"The API key is not valid\."/,
  /"createApiKey":\{"key":"svc_/,
  /"deleted": 2,/,
  /"data":\{"me":\{"name":"CI deploy"\},"info"/,
  /--permissions INFO:READ_ANY,ME:READ_OWN/,
];

describe('docs/tour.md, in one terminal', () => {
  const check = ({ screen }: Typed) => {
    let rest = screen;
    for (const output of OUTPUTS) {
      const at = output.exec(rest);
      assert.ok(at, `${String(output)} is missing in:\n${rest}`);
      rest = rest.slice(at.index + at[0].length);
    }
  };
  for (const shell of SHELLS) {
    it(`works in ${shell.name} typed all at once: no command reads the lines after it`, async function () {
      needsPrograms(this, shell.name);
      const typed = await typeAll(BLOCKS, shell, 'at once');
      check(typed);
      assert.deepEqual(
        typed.statuses.filter((status) => status !== '0'),
        FAILING,
      );
    });

    it(`works in ${shell.name} pasted as one text`, async function () {
      needsPrograms(this, shell.name);
      check(await typeAll(BLOCKS, shell, 'pasted'));
    });
  }
});
