import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { codesWith, EXIT_CODES, exitCodeFor } from '../../src/cli/error-codes.ts';
import { ENVIRONMENT } from '../../src/cli/help/environment.ts';
import { shortId } from '../../src/cli/short-id.ts';
import { cleanEnv, finished, ROOT, runCli } from '../support/process.ts';
import { runProgramHere } from '../support/program-here.ts';
import { cliOnTerminal } from '../support/pty.ts';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const manifest = JSON.parse(readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, { id: string; group?: string; isAtTop?: boolean }>;
};

/** The output of the program. Fails if it fails. */
async function outputOf(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> {
  const { stdout, stderr, code } = await (env ? runCli(args, { env }) : runProgramHere(args));
  assert.deepEqual([stderr, code], ['', 0], args.join(' '));
  return stdout;
}

const PROGRAM = new URL('../../dist/cli/own-program.js', import.meta.url).href;

/** Help pages at a width, all from one process because the width is read once. */
async function atWidth(width: number, pages: readonly (readonly string[])[]): Promise<string[]> {
  const program = `
    const { runOwnProgram } = await import('${PROGRAM}');
    for (const args of ${JSON.stringify(pages)}) {
      process.stdout.write('\\f');
      await runOwnProgram(args);
    }`;
  const env = cleanEnv({ OCLIF_COLUMNS: String(width) });
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { env });
  const { stdout, stderr, code } = await finished(child);
  assert.deepEqual([stderr, code], ['', 0]);
  return stdout.split('\f').slice(1);
}

/** The sections of a page, by header. */
function sectionsOf(page: string): Record<string, string> {
  const [, ...parts] = page.split(/^(?=[A-Z][A-Z ]+$)/m);
  return Object.fromEntries(parts.map((part) => [part.split('\n', 1)[0]!, part]));
}

/** The environment variables that a source file reads: as properties, by destructuring, or from a table. */
function variablesReadBy(text: string): string[] {
  const properties = text.matchAll(/\benv(?:\.|\[')([A-Z][A-Z_]+)/g);
  const listed = text.matchAll(/\bvariable: '([A-Z][A-Z_]+)'/g);
  const patterns = Array.from(text.matchAll(/\{([^{}]*)\} = (?:\w+\.)*env\b/g), ([, pattern]) => pattern!);
  const destructured = patterns.join().matchAll(/(?:^|,)\s*([A-Z][A-Z_]+)\b/g);
  return [...properties, ...listed, ...destructured].map(([, name]) => name!);
}

describe('svc-api version', () => {
  const line = `svc-api/${version} ${process.platform}-${process.arch} node-${process.version}\n`;

  it('prints the version, as --version, -v and -V do', async () => {
    for (const asked of ['version', '--version', '-v', '-V']) assert.equal(await outputOf([asked]), line);
  });

  it('prints it as JSON', async () => {
    const json = { version, platform: `${process.platform}-${process.arch}`, node: process.versions.node };
    for (const asked of ['version', '--version', '-v', '-V'])
      assert.deepEqual(JSON.parse(await outputOf([asked, '--json'])), json);
  });

  it('has help', async () => {
    const pages = await Promise.all(
      [
        ['version', '--help'],
        ['version', '-h'],
        ['help', 'version'],
      ].map((args) => outputOf(args)),
    );
    assert.match(pages[0]!, /^Show the version .*\$ svc-api version \[--json\]\n/s);
    assert.deepEqual(pages, [pages[0], pages[0], pages[0]]);
  });
});

describe('the help', () => {
  it('without arguments is one screen: what to start with, to manage, to operate, and where the rest is', async () => {
    const page = await outputOf([]);
    const sections = sectionsOf(page);
    assert.deepEqual(Object.keys(sections), ['USAGE', 'START', 'MANAGE', 'OPERATE', 'HELP TOPICS', 'LEARN MORE']);
    assert.match(page, /^Puts API keys in front of the services that you host yourself/);
    const namesIn = (header: string) =>
      Array.from(sections[header]!.matchAll(/^ {2}([a-z]+(?: [a-z]+)*) {2,}[A-Z].*\.$/gm), ([, name]) => name);
    assert.deepEqual(namesIn('START'), ['guard', 'apikey create', 'apikey list', 'apikey delete', 'serve']);
    assert.ok(namesIn('MANAGE').includes('apikey rotate') && namesIn('OPERATE').includes('backup'));
    assert.match(sections['HELP TOPICS']!, /^ {2}environment .*\n {2}exit-codes /m);
    assert.match(sections['LEARN MORE']!, /svc-api help --all .*README\.md$/ms);
    assert.ok(page.trimEnd().split('\n').length <= 40);
  });

  it('lists all commands on request, with summaries, in groups', async () => {
    const page = await outputOf(['help', '--all']);
    for (const args of [
      ['--help', '--all'],
      ['-h', '--all'],
      ['help', '--nested-commands'],
    ])
      assert.equal(await outputOf(args), page);
    const listed = Array.from(page.matchAll(/^ {2}(\S+(?: [a-z]+)*) {2,}[A-Z]/gm), ([, name]) => name!);
    const own = Object.values(manifest.commands).map((command) =>
      (shortId(command) ?? command.id).replaceAll(':', ' '),
    );
    assert.deepEqual(
      own.filter((name) => !listed.includes(name)),
      [],
    );
    assert.deepEqual(
      listed.filter((name) => /^apikey (login|routes|ls|rm|add)/.test(name)),
      [],
    );
    assert.match(sectionsOf(page)['SERVERS']!, /^ {2}guard .*^ {2}serve /ms);
  });

  it('of a command about keys is also shown by apikey help', async () => {
    for (const command of [[], ['create']]) {
      const pages = await Promise.all([
        outputOf(['apikey', ...command, '--help']),
        outputOf(['apikey', 'help', ...command]),
        outputOf(['help', 'apikey', ...command]),
      ]);
      assert.deepEqual(pages, [pages[0], pages[0], pages[0]]);
    }
  });

  it('is refused for words that are neither a command about keys nor a topic', async () => {
    const { stdout, stderr, code } = await runProgramHere(['apikey', 'help', 'svc_0a1B2c3D4e5F_0123456789']);
    assert.deepEqual([stdout, code], ['', 2]);
    assert.match(
      stderr,
      /No help is available for "svc_0a1B2c3D4e5F_…"\. The topics are environment and exit-codes\. /,
    );
  });

  it('of a topic takes no further words', async () => {
    const { stdout, stderr, code } = await runProgramHere(['apikey', 'help', 'exit-codes', 'foo']);
    assert.deepEqual([stdout, code], ['', 2]);
    assert.match(stderr, /^Error: Unexpected argument: foo\. /);
  });

  it('of each form of apikey without a verb has only its flags, the global ones last', async () => {
    const flagsOf = (section: string) => Array.from(section.matchAll(/^ {2}--([a-z-]+)/gm), ([, flag]) => flag);
    for (const [form, own, other] of [
      ['CREATE', ['create', 'roles', 'overwrite'], 'delete'],
      ['DELETE', ['delete'], 'roles'],
    ] as const) {
      const page = await outputOf(['apikey', `--${form.toLowerCase()}`, '--help']);
      const sections = sectionsOf(page);
      assert.deepEqual(
        Object.keys(sections).filter((header) => header.endsWith('FLAGS')),
        ['FLAGS', `${form} FLAGS`, 'GLOBAL FLAGS'],
      );
      assert.deepEqual(flagsOf(sections['FLAGS']!), ['name']);
      assert.ok(own.every((flag) => flagsOf(sections[`${form} FLAGS`]!).includes(flag)));
      assert.ok(!flagsOf(page).includes(other));
      assert.ok(flagsOf(sections['GLOBAL FLAGS']!).includes('json'));
    }
  });

  it('cuts no word at 60 columns, and shows no line that is wider', async () => {
    const ids = Object.keys(manifest.commands).map((id) => [...id.split(':'), '--help']);
    const all = [[], ['help', 'exit-codes'], ['help', 'environment'], ...ids];
    const [widePages, narrowPages] = await Promise.all([1000, 60].map((width) => atWidth(width, all)));
    for (const [index, args] of all.entries()) {
      const [wide, narrow] = [widePages![index]!, narrowPages![index]!];
      assert.match(narrow, /\S/, args.join(' '));
      const words = new Set(['\\', ...wide.split(/\s+/)]);
      const cut = narrow.split(/\s+/).filter((word) => !words.has(word));
      const long = narrow.split('\n').filter((line) => line.length > 60 && !line.startsWith('Documentation: '));
      assert.deepEqual([cut, long], [[], []], args.join(' '));
    }
  });

  it('is as wide as COLUMNS says, unless OCLIF_COLUMNS does', async () => {
    const args = ['apikey', '--help'];
    const asked = await outputOf(args, { COLUMNS: '60' });
    assert.equal(asked, (await atWidth(60, [args]))[0]);
    assert.equal(await outputOf(args, { COLUMNS: '60', OCLIF_COLUMNS: '100' }), (await atWidth(100, [args]))[0]);
    assert.equal(
      await outputOf(['help', 'environment'], { COLUMNS: '60' }),
      (await atWidth(60, [['help', 'environment']]))[0],
    );
  });

  it('of serve names no flag that only tunes', async () => {
    assert.doesNotMatch(await outputOf(['serve', '--help']), /--(?:keep-alive|max-|metrics-host)/);
  });

  it('of apikey has a group for each verb', () => {
    const others = Object.values(manifest.commands).filter(({ group }) => group === undefined);
    const expected = ['apikey', 'apikey:autocomplete', 'apikey:help'];
    assert.deepEqual(others.map(({ id }) => id).toSorted(), expected);
  });

  it('of apikey is one screen with the verbs in groups', async () => {
    const page = await outputOf(['apikey', '--help']);
    const sections = sectionsOf(page);
    assert.match(sections['USAGE']!, /\$ svc-api apikey <command>/);
    const groups = ['KEYS', 'AUTOMATION', 'LEAKS', 'STORE', 'OTHER COMMANDS'];
    assert.deepEqual(Object.keys(sections), ['USAGE', ...groups, 'MORE']);
    assert.match(sections['LEAKS']!, /^ {2}apikey scan +[A-Z].*\n {2}apikey verify +[A-Z]/m);
    assert.match(sections['MORE']!, /svc-api apikey --create --help/);
    assert.ok(page.trimEnd().split('\n').length <= 40);
  });

  it('has lines of 80 where it is not shown at a terminal, and of the width of the terminal where it is', async () => {
    const longest = (page: string) => Math.max(...page.split(/\r?\n/).map((line) => line.length));
    assert.ok(longest(await outputOf([])) <= 80);
    const terminal = cliOnTerminal(['--help'], {});
    await terminal.end();
    assert.ok(longest(terminal.screen) > 80);
  });

  it('has colours at a terminal, unless NO_COLOR is set', async () => {
    for (const [env, hasColours] of [
      [{}, true],
      [{ NO_COLOR: '1' }, false],
    ] as const) {
      for (const args of [
        ['--help'],
        ['help', 'exit-codes'],
        ['apikey', '--help'],
        ['apikey', 'help', 'environment'],
      ]) {
        const terminal = cliOnTerminal(args, env);
        assert.equal(await terminal.end(), 0);
        assert.equal(stripVTControlCharacters(terminal.raw) !== terminal.raw, hasColours, args.join(' '));
      }
    }
  });
});

describe('the version', () => {
  for (const args of [
    ['version', 'foo'],
    ['version', '--nonsense=hunter2'],
    ['-v', 'foo'],
    ['-V', 'foo'],
    ['apikey', 'version'],
  ])
    it(`is not shown where something else is typed: ${args.join(' ')}`, async () => {
      const { stdout, stderr, code } = await runProgramHere(args);
      assert.deepEqual([stdout, code], ['', 2]);
      assert.match(
        stderr,
        /^Error: (Unexpected argument: (foo|--nonsense)\.|Unknown command: ".*"\.) .*\nCode: USAGE\n/,
      );
      assert.ok(!stderr.includes('hunter2'));
    });
});

describe('the help on a word that objects have', () => {
  for (const args of [
    ['help', 'constructor'],
    ['help', '__proto__'],
    ['apikey', 'help', 'constructor'],
  ])
    it(`is an error like any other: ${args.join(' ')}`, async () => {
      const { stderr, code } = await runProgramHere(args);
      assert.match(stderr, /^Error: (Unknown command: |No help is available for )".*\nCode: USAGE\n/);
      assert.equal(code, 2);
    });
});

describe('the help topics', () => {
  it('are shown by help, by --help, and by apikey help, which a host has too', async () => {
    for (const topic of ['environment', 'exit-codes']) {
      const pages = await Promise.all(
        [
          ['help', topic],
          [topic, '--help'],
          [topic, '-h'],
          ['apikey', 'help', topic],
        ].map((args) => outputOf(args)),
      );
      for (const page of pages) assert.equal(page, pages[0]);
      assert.match(await outputOf(['apikey', '--help']), new RegExp(`svc-api apikey help ${topic}`));
    }
  });

  it('name every exit code, with the codes of errors that lead to it', async () => {
    const page = await outputOf(['help', 'exit-codes']);
    for (const { exit } of EXIT_CODES) {
      assert.match(page, new RegExp(`^ {2}${exit.replaceAll('+', '\\+')} `, 'm'));
      for (const code of codesWith(exit)) assert.match(page, new RegExp(`\\b${code}\\b`));
    }
    assert.deepEqual([exitCodeFor('USAGE'), exitCodeFor('CANCELLED'), exitCodeFor('NOT_FOUND')], [2, 130, 1]);
  });

  it('name every environment variable that the program reads', async () => {
    const page = await outputOf(['help', 'environment']);
    const sources = globSync(['src/**/*.ts', 'bin/*.js'], { cwd: ROOT }).map((path) =>
      readFileSync(join(ROOT, path), 'utf8'),
    );
    const read = sources.flatMap(variablesReadBy);
    for (const name of ['SVC_API_PORT', 'NODE_DISABLE_COMPILE_CACHE', 'COLUMNS'])
      assert.ok(read.includes(name), `${name} is read`);
    // The help lists OpenTelemetry's variables as one.
    for (const name of new Set(read.map((each) => each.replace(/^OTEL_.*/, 'OTEL_…'))))
      assert.ok(page.includes(name), name);
    const names = ENVIRONMENT.map(({ name }) => name);
    assert.deepEqual(names, [...new Set(names)]);
    assert.ok(ENVIRONMENT.length > 10);
  });
});
