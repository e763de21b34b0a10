import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';

/** In reading order: the README leads to the tour, and both to the other pages. */
const PAGES = [
  ...new Set([
    'README.md',
    'docs/tour.md',
    ...globSync(['docs/**/*.md', 'examples/*/README.md'], { cwd: ROOT }).toSorted(),
  ]),
];
/** A server outlives its block, in the shell that started it. */
const SERVER =
  /^(?:(?:svc-api|\.\/run\.js|npx acme) (?:serve|guard|edge)(?= |$)|node -e 'http\.createServer|npm start|node server\.js)/;
/** Variables that a shell sets for all later commands. */
const PLACE = /\bSVC_API_(?:DATABASE|CONFIG|SERVER|KEY)\b/g;

const readPage = (page: string) => readFileSync(join(ROOT, page), 'utf8');
const linesOf = (block: string) =>
  block
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** The commands in a page's blocks, one per line, without the content of the files that they write. */
const commandsOf = (page: string): string[][] =>
  blocksOf(page).map((block) => linesOf(block.replaceAll(/<<'END'\n.*?^END$/gms, '')));

/** The name of the key that a command creates or deletes. */
const nameIn = (command: string) =>
  /(?:--name[ =]|\b(?:create|delete) (?!-))("[^"]*"|[^\s)]+)/.exec(command)?.[1]?.replaceAll('"', '');

/** A home folder in which all blocks of all pages run. */
class Home {
  readonly failures: string[] = [];
  readonly #names = new Set<string>();
  #database = '';

  run(page: string, command: string): void {
    const [, database] = /\bSVC_API_(?:DATABASE|SERVER)=(\S+)/.exec(command) ?? [];
    if (database !== undefined) this.#database = `${page} ${database}`;
    if (/^unset .*SVC_API_(?:DATABASE|SERVER)/.test(command)) this.#database = '';
    // One of the alternatives creates it.
    const [one = ''] = command.split(' || ');
    for (const part of one.split(/ && | \| |;/)) this.#runPart(page, part);
  }

  #runPart(page: string, command: string): void {
    const verb = /(\S+)(?: apikey)? (?:--)?(create|delete)\b/.exec(command);
    const name = verb && nameIn(command);
    if (!verb || !name || command.includes('--dry-run')) return;
    // Hosts, services and containers have their own stores.
    const program = /\b(?:service-keys|acme|garden|docker exec|kubectl)\b/.exec(command)?.[0] ?? '';
    const key = [program, program === '' ? this.#database : '', name].join('|');
    if (verb[2] === 'delete') this.#names.delete(key);
    else if (!command.includes('--overwrite') && this.#names.has(key)) this.failures.push(`${page}: ${command}`);
    else this.#names.add(key);
  }
}

describe('the shell blocks of all pages, run in one home', () => {
  it('create no key under a name that is taken', () => {
    const home = new Home();
    home.run('a', 'KEY=$(svc-api apikey --create --name "A" --roles GUEST)');
    home.run('b', 'svc-api apikey create "A" --roles GUEST --overwrite > secret');
    assert.deepEqual(home.failures, []);
    home.run('c', 'svc-api apikey create A --roles GUEST');
    assert.deepEqual(home.failures.splice(0), ['c: svc-api apikey create A --roles GUEST']);
    home.run('d', 'svc-api apikey --delete --name "A" --json');
    let created = 0;
    for (const page of PAGES)
      for (const command of commandsOf(page).flat()) {
        created += Number(/\bcreate\b/.test(command));
        home.run(page, command);
      }
    assert.ok(created > 12, String(created));
    assert.deepEqual(home.failures, []);
  });

  it('make no file twice that may only be made once', () => {
    const made = PAGES.flatMap((page) =>
      commandsOf(page)
        .flat()
        .flatMap((command) =>
          command.includes('--overwrite')
            ? []
            : Array.from(command.matchAll(/(?:\bmkdir (?!-p)|\bmkfifo |svc-api backup )(\S+)/g), ([, file]) => file!),
        ),
    );
    assert.ok(made.length > 2);
    assert.deepEqual(made, [...new Set(made)]);
  });

  it('end each server that they start, so that its port is free for the next', () => {
    let started = 0;
    for (const page of PAGES) {
      const text = commandsOf(page)
        .flat()
        .concat(Array.from(readPage(page).matchAll(/`(kill [^`]*)`/g), ([, command]) => command!));
      for (const block of commandsOf(page))
        for (const [index, command] of block.entries()) {
          if (!SERVER.test(command)) continue;
          started += 1;
          const isBehind = /&(?: |$)/.test(command.replaceAll('&&', ''));
          if (!isBehind) {
            // Ctrl-C ends it, so commands after it would never run.
            assert.equal(index, block.length - 1, `${page}: ${command}`);
            continue;
          }
          const [, name] = /&\s+(\w+)=\$!/.exec(`${command} ${block[index + 1] ?? ''}`) ?? [];
          assert.ok(name, `${page}: ${command}`);
          assert.ok(
            text.some((each) => each.startsWith('kill ') && each.includes(`"$${name}"`)),
            `${page}: ${command}`,
          );
        }
    }
    assert.ok(started > 10, String(started));
  });

  it('leave no store or configuration of their own behind for the next page', () => {
    for (const page of PAGES) {
      const commands = commandsOf(page)
        .flat()
        .concat(Array.from(readPage(page).matchAll(/`[^`]*(unset [^`]*)`/g), ([, command]) => command!));
      const named = (of: RegExp) =>
        new Set(commands.filter((each) => of.test(each)).flatMap((each) => each.match(PLACE) ?? []));
      const [exported, ended] = [named(/^export /), named(/^unset /)];
      assert.deepEqual(
        [...exported].filter((name) => !ended.has(name)),
        [],
        page,
      );
    }
  });
});
