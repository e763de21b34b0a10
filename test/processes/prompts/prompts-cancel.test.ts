import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { cliOnTerminal, KEYS } from '../../support/pty.ts';
import { keysIn } from '../../support/stored.ts';
import { tempFolder } from '../../support/temp.ts';

const { enter, space, up, ctrlC, ctrlD } = KEYS;
type Step = readonly [question: string, keys: string];

const CREATE: readonly Step[] = [
  ['? Name', `Taken${enter}`],
  ['Replace it, and', `y${enter}`],
  ['? Description', enter],
  ['? Roles', enter],
  ['? Permissions: choose a resource', enter],
  ['? Actions on', `${space}${enter}`],
  ['? Permissions: ACTIVATION_CODE', enter],
  ['? Expires', `${up}${enter}`],
  ['? Expires in (', '1d'],
];
const DELETE: readonly Step[] = [
  ['? API keys to delete', `${space}${enter}`],
  ['? Delete "Taken"', enter],
];

describe('a prompt that is broken off', () => {
  for (const [key, typed] of [
    ['Ctrl-C', ctrlC],
    ['Ctrl-D', ctrlD],
  ] as const) {
    for (const [mode, steps] of [
      ['--create', CREATE],
      ['--delete', DELETE],
    ] as const) {
      it(`ends ${mode} at each question by ${key}: one short line, exit 130, nothing changed`, async () => {
        const cli = testCli();
        const { id } = await cli.given('Taken');
        // Two at a time, because the suite uses two cores.
        const ends = steps.map(([question], index) => ({ question, before: steps.slice(0, index) }));
        for (let index = 0; index < ends.length; index += 2)
          await Promise.all(ends.slice(index, index + 2).map(breakOff));
        assert.deepEqual(
          (await keysIn(cli.database)).map((key) => key.id),
          [id],
        );

        async function breakOff({ question, before }: (typeof ends)[number]): Promise<void> {
          const stdout = join(tempFolder(), 'stdout');
          const terminal = cliOnTerminal(['apikey', mode], { SVC_API_DATABASE: cli.database }, stdout);
          try {
            for (const [text, keys] of before) await terminal.answer(text, keys);
            await terminal.see(question);
            const shown = terminal.screen.length;
            terminal.type(typed);
            assert.equal(await terminal.end(), 130, question);
            // The prompt can finish drawing first.
            assert.match(terminal.screen.slice(shown), /\nCancelled: nothing was changed\.\n$/);
            assert.doesNotMatch(terminal.screen, /Error|\n {4}at /);
            assert.equal(readFileSync(stdout, 'utf8'), '');
          } finally {
            terminal.close();
          }
        }
      });
    }
  }
});
