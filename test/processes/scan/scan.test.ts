import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { scan as scanPaths } from '../../../src/features/scan/cli/scan.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openKeys } from '../../../src/service/open-keys.ts';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';
import { runCliHere, type Surroundings } from '../../support/cli-here.ts';
import { errorText } from '../../support/errors.ts';
import { type Finished, runCli, startCli } from '../../support/process.ts';
import { AS_NOBODY, runStoreChild } from '../../support/store-process.ts';
import { tempFolder } from '../../support/temp.ts';

interface Found {
  path: string;
  line: number;
  column: number;
  prefix: string;
  status: string;
  name: string | null;
  id: string | null;
}
interface Report {
  files: number;
  found: Found[];
  live: number;
  revoked: number;
  unreadable: number;
}

/** The store, in the folder with the files to scan. */
let database: string;
let folder: string;
/** A secret for each status of a key. */
let secrets: Record<'live' | 'off' | 'over' | 'replaced' | 'unknown', string>;

const all = () => Object.values(secrets);
const prefixOf = (secret: string) => `${secret.slice(0, 17)}…`;
const write = (path: string, content: string | Buffer) => {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), content);
};

/** Runs `apikey scan` in the folder, optionally with stdin, and checks that the output contains no secret. */
async function scan(args: readonly string[], { input, env }: Omit<Surroundings, 'cwd'> = {}): Promise<Finished> {
  const surroundings = {
    cwd: folder,
    env: { SVC_API_DATABASE: database, ...env },
    ...(input !== undefined && { input }),
  };
  const result = await runCliHere(['apikey', 'scan', ...args], surroundings);
  for (const secret of all()) assert.ok(!`${result.stdout}${result.stderr}`.includes(secret.slice(17)));
  return result;
}

async function report(
  args: readonly string[],
  options?: Omit<Surroundings, 'cwd'>,
): Promise<Report & { code: number | null }> {
  const { stdout, code } = await scan([...args, '--json'], options);
  return { ...(JSON.parse(stdout) as Report), code };
}

/** The paths with findings. */
async function pathsOf(...args: string[]): Promise<string[]> {
  return (await report(args)).found.map(({ path }) => path);
}

describe('apikey scan', () => {
  beforeEach(async () => {
    database = join(tempFolder(), 'keys.sqlite');
    folder = tempFolder();
    const { keys, store, time } = await openTestKeys({ database });
    time.now = Date.UTC(2026, 0, 1);
    const create = (name: string, end = {}) => keys.create({ name, roles: ['GUEST'], ...end }, OPERATOR);
    const [live, off, over, replaced, gone] = [
      await create('Live'),
      await create('Off'),
      await create('Over', { expiresIn: '1d' }),
      await create('Replaced'),
      await create('Gone'),
    ];
    await keys.setEnabled(off.apiKey.id, false, OPERATOR);
    await keys.rotate(replaced.apiKey.id, { grace: '0s' }, OPERATOR);
    await keys.delete([gone.apiKey.id], OPERATOR);
    await store.close();
    secrets = {
      live: live.key,
      off: off.key,
      over: over.key,
      replaced: replaced.key,
      unknown: gone.key,
    };
  });

  it('reports the place of a key, its name, and whether it is live', async () => {
    write('a/config.env', `# clé\nKEY=${secrets.off}\n\n  "${secrets.over}", "${secrets.unknown}"\n`);
    write('b.txt', secrets.replaced);
    write('c.txt', `no key: svc_abc_def\n${secrets.live.slice(0, -1)}\n`);
    const quiet = await scan(['.']);
    assert.equal(
      quiet.stdout,
      [
        `./a/config.env:2:5  ${prefixOf(secrets.off)}  DISABLED  "Off"\n`,
        `./a/config.env:4:4  ${prefixOf(secrets.over)}  EXPIRED  "Over"\n`,
        `./a/config.env:4:74  ${prefixOf(secrets.unknown)}  UNKNOWN\n`,
        `./b.txt:1:1  ${prefixOf(secrets.replaced)}  ROTATED  "Replaced"\n`,
      ].join(''),
    );
    assert.deepEqual([quiet.stderr, quiet.code], ['3 files read, 4 secrets found, 0 live keys.\n', 0]);
    write('d.txt', `${secrets.live} ${secrets.live}`);
    const { stdout, stderr, code } = await scan(['d.txt', 'a']);
    assert.match(
      stdout,
      new RegExp(
        `^d.txt:1:1  ${prefixOf(secrets.live)}  ACTIVE  "Live"\nd.txt:1:68  .* ACTIVE  "Live"\na/config.env:2:5 `,
      ),
    );
    assert.deepEqual([stderr, code], ['2 files read, 5 secrets found, 1 live key.\n', 3]);
  });

  it('answers in JSON with one object of these fields', async () => {
    write('key', `\n ${secrets.live}`);
    const keys = await openKeys({ database });
    const { id } = (await keys.findByName('Live', OPERATOR))!;
    await keys.close();
    const { stdout, stderr, code } = await scan(['key', '-', '--json'], { input: secrets.unknown });
    const found = [
      { path: 'key', line: 2, column: 2, prefix: prefixOf(secrets.live), status: 'ACTIVE', name: 'Live', id },
      { path: '-', line: 1, column: 1, prefix: prefixOf(secrets.unknown), status: 'UNKNOWN', name: null, id: null },
    ];
    assert.equal(stdout, `${JSON.stringify({ files: 2, found, live: 1, revoked: 0, unreadable: 0 }, null, 2)}\n`);
    assert.deepEqual([stderr, code], ['', 3]);
  });

  it('finds no mistyped key', async () => {
    write('mistyped', `${secrets.live.slice(0, -1)}${secrets.live.endsWith('0') ? '1' : '0'}`);
    assert.deepEqual(await report(['.']), { files: 1, found: [], live: 0, revoked: 0, unreadable: 0, code: 0 });
  });

  it('fails without a store, before it reads anything', async () => {
    rmSync(database);
    write('key', secrets.live);
    const { stdout, stderr, code } = await scan(['.', 'none', '--revoke']);
    assert.deepEqual(
      [stdout, stderr, code],
      ['', errorText('STORE_UNAVAILABLE', `The key store ${database} does not exist. Check the path.`), 1],
    );
    assert.ok(!existsSync(database));
  });

  it('walks folders, but neither links nor .git folders, unless they are named', async () => {
    const outside = tempFolder();
    writeFileSync(join(outside, 'key'), secrets.live);
    write('deep/er/.hidden', secrets.live);
    write('.git/key', secrets.live);
    symlinkSync('..', join(folder, 'deep/loop'));
    symlinkSync(outside, join(folder, 'folder'));
    symlinkSync(join(outside, 'key'), join(folder, 'file'));
    symlinkSync('nowhere', join(folder, 'nowhere'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    assert.deepEqual(await pathsOf('.'), ['./deep/er/.hidden']);
    assert.deepEqual(await pathsOf('folder/', 'file', '.git'), ['folder/key', 'file', '.git/key']);
  });

  it('finds a key in a binary, in a line of any length, and where two parts of a file meet', async () => {
    const border = 256 * 1024;
    const content = Buffer.alloc(8 * border, 0xff);
    const places = [0, border - 33, 3 * border - 1, 5 * border, 8 * border - 66];
    for (const place of places) content.write(secrets.live, place);
    content.write('\n', 4 * border);
    write('binary', content);
    const { found } = await report(['binary']);
    assert.deepEqual(
      found.map(({ line, column }) => [line, column]),
      places.map((place) => (place < 4 * border ? [1, place + 1] : [2, place - 4 * border])),
    );
  });

  it('writes a find before it reads on', async () => {
    const child = startCli(['apikey', 'scan', '-'], {
      env: { SVC_API_DATABASE: database },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin!.write(`${secrets.live}\n`);
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    assert.equal(String(line), `-:1:1  ${prefixOf(secrets.live)}  ACTIVE  "Live"\n`);
    child.stdin!.end();
    const [code] = (await once(child, 'exit')) as [number];
    assert.equal(code, 3);
  });

  it('goes on where something cannot be read, and ends with 1 if no live key was found', async () => {
    write('key', secrets.unknown);
    const { stdout, stderr, code } = await scan(['none', 'key', '']);
    assert.equal(stdout, `key:1:1  ${prefixOf(secrets.unknown)}  UNKNOWN\n`);
    const missing = (path: string) => `${path} could not be read: there is no such file.\n`;
    assert.deepEqual(
      [stderr, code],
      [`${missing('none')}${missing('')}1 file read, 1 secret found, 0 live keys.\n`, 1],
    );
    write('key', secrets.live);
    const { files, live, unreadable, code: exit } = await report(['none', 'key']);
    assert.deepEqual([files, live, unreadable, exit], [1, 1, 1, 3]);
  });

  it('names the files and folders that it may not read', async () => {
    for (const path of ['closed/key', 'locked', 'open']) write(path, 'nothing');
    chmodSync(folder, 0o755);
    chmodSync(join(folder, 'closed'), 0);
    chmodSync(join(folder, 'locked'), 0);
    const home = tempFolder();
    chmodSync(home, 0o1777);
    const env = { HOME: home, SVC_API_DATABASE: join(home, 'own', 'keys.sqlite') };
    await runStoreChild(['write', env.SVC_API_DATABASE], AS_NOBODY);
    const { stderr, code } = await runCli(['apikey', 'scan', '.'], { cwd: folder, env, ...AS_NOBODY });
    chmodSync(join(folder, 'closed'), 0o755);
    const lines = ['closed', 'locked'].map((path) => `./${path} could not be read: EACCES.\n`);
    assert.deepEqual([stderr, code], [`${lines.join('')}1 file read, 0 secrets found, 0 live keys.\n`, 1]);
  });

  it('ignores a file that is gone by the time it is read', async () => {
    for (const path of ['first', 'second']) write(path, secrets.unknown);
    const unreadable: string[] = [];
    const files = await scanPaths({
      paths: [folder],
      reports: [],
      identify: async () => ({ unknown: 'unknown' }),
      onFound: async () => rmSync(join(folder, 'second')),
      onUnreadable: (text) => unreadable.push(text),
    });
    assert.deepEqual([files, unreadable], [1, []]);
  });

  it('shows file names without control characters and secrets, and reads those that are not UTF-8', async () => {
    write(`esc\u001b[31m\n${secrets.live}`, secrets.off);
    writeFileSync(Buffer.concat([Buffer.from(join(folder, 'latin')), Buffer.of(0xe9)]), secrets.off);
    assert.deepEqual(await pathsOf('.'), [`./esc<U+001B>[31m<U+000A>${prefixOf(secrets.live)}`, './latin\ufffd']);
    const { stdout } = await scan(['.']);
    assert.ok(stdout.startsWith(`./esc<U+001B>[31m<U+000A>${prefixOf(secrets.live)}:1:1  `));
    assert.match((await scan([`no\u001bne${secrets.live}`])).stderr, /^no<U\+001B>nesvc_.{12}_… could not be read/);
  });

  it('refuses a run without paths and unknown flags', async () => {
    for (const args of [[], ['--all', '.']]) {
      const { stdout, code } = await scan([...args, '--json']);
      assert.deepEqual([(JSON.parse(stdout) as { code: string }).code, code], ['USAGE', 2]);
    }
  });

  describe('--revoke', () => {
    it('disables the live keys that it finds, which the audit log tells', async () => {
      write('keys', all().join('\n') + secrets.live);
      const { stdout, stderr, code } = await scan(['--revoke', 'keys']);
      const lines = stdout.split('\n').filter((line) => line.includes('ACTIVE'));
      assert.equal(lines.length, 2, 'one secret is asked for once, and is shown as it was found');
      assert.equal(
        stderr,
        `API key "Live" (${prefixOf(secrets.live)}) is disabled\n1 file read, 6 secrets found, 1 live key, 1 disabled.\n`,
      );
      assert.equal(code, 3);
      const keys = await openKeys({ database });
      const [entry, leak] = await keys.audit.read({}, OPERATOR);
      const found = await Promise.all(all().map((secret) => keys.identify(secret, OPERATOR)));
      await keys.close();
      assert.deepEqual([entry?.action, entry?.apiKey?.name, entry?.actor.kind], ['DISABLE', 'Live', 'CLI']);
      assert.deepEqual([leak?.action, leak?.apiKey?.name], ['LEAK', 'Live']);
      const { secret, place } = leak!.after as { secret: string; place: string };
      assert.deepEqual([secret, /^keys:\d+:\d+$/.test(place)], [prefixOf(secrets.live), true]);
      assert.deepEqual(
        found.map((result) => ('apiKey' in result ? result.status : 'UNKNOWN')),
        ['DISABLED', 'DISABLED', 'EXPIRED', 'ROTATED', 'UNKNOWN'],
      );
      const again = await report(['--revoke', 'keys']);
      assert.deepEqual([again.live, again.revoked, again.code], [0, 0, 0]);
    });

    it('disables a key that is refused only for a parent key, and would be live again with that one', async () => {
      const keys = await openKeys({ database });
      const { principal } = await createPrincipal(keys, { name: 'Above', roles: ['ADMIN'] });
      const { key: secret, apiKey: key } = await keys.create({ name: 'Below', roles: ['GUEST'] }, principal);
      await keys.setEnabled(principal.apiKey.id, false, OPERATOR);
      write('keys', secret);
      const { live, revoked, found, code } = await report(['--revoke', '.']);
      assert.deepEqual([live, revoked, found[0]!.status, code], [0, 1, 'DISABLED', 0]);
      assert.notEqual((await keys.findById(key.id, OPERATOR))!.disabledAt, null);
      await keys.close();
    });

    it('counts in JSON the keys that it has disabled', async () => {
      write('keys', secrets.live);
      const { live, revoked, found, code } = await report(['--revoke', '.']);
      assert.deepEqual([live, revoked, found[0]!.status, code], [1, 1, 'ACTIVE', 3]);
    });
  });

  describe('--report', () => {
    /** In the format of gitleaks 8. */
    const gitleaks = (more: object) => ({
      RuleID: 'svc-api-key',
      StartLine: 3,
      EndLine: 3,
      StartColumn: 9,
      EndColumn: 77,
      Match: `KEY=${secrets.live}`,
      Secret: secrets.live,
      File: 'deploy/.env',
      SymlinkFile: '',
      Commit: 'b2d6f6',
      Fingerprint: 'b2d6f6:deploy/.env:svc-api-key:3',
      ...more,
    });
    /** In the format of TruffleHog 3. */
    const truffleHog = (source: object, secret: string) => ({
      SourceMetadata: { Data: source },
      DetectorName: 'CustomRegex',
      Verified: false,
      Raw: secret,
    });

    it('of gitleaks is looked up: each finding once, where it was found', async () => {
      const inFolder = gitleaks({ Commit: '', Secret: secrets.off, Match: secrets.off, StartLine: 1, StartColumn: 1 });
      write(
        'report.json',
        JSON.stringify([gitleaks({}), inFolder, gitleaks({ Secret: 'AKIA', Match: 'AKIA' })], null, 1),
      );
      const { stdout, stderr, code } = await scan(['--report', 'report.json']);
      assert.equal(
        stdout,
        `b2d6f6:deploy/.env:3:9  ${prefixOf(secrets.live)}  ACTIVE  "Live"\n` +
          `deploy/.env:1:1  ${prefixOf(secrets.off)}  DISABLED  "Off"\n`,
      );
      assert.deepEqual([stderr, code], ['1 file read, 2 secrets found, 1 live key.\n', 3]);
    });

    it('of TruffleHog is looked up, from stdin, beside files, and --revoke disables the reported keys', async () => {
      const lines = [
        truffleHog({ Git: { commit: 'c0ffee', file: 'a.txt', email: 'a@b', line: 7 } }, secrets.live),
        truffleHog({ Filesystem: { file: 'b.txt' } }, secrets.unknown),
      ];
      write('file', secrets.off);
      const input = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
      const { found, live, revoked, files } = await report(['--revoke', 'file', '--report', '-'], { input });
      assert.deepEqual(
        found.map(({ path, line, column, status }) => [path, line, column, status]),
        [
          ['c0ffee:a.txt', 7, 1, 'ACTIVE'],
          ['b.txt', 1, 1, 'UNKNOWN'],
          ['file', 1, 1, 'DISABLED'],
        ],
      );
      assert.deepEqual([live, revoked, files], [1, 1, 2]);
    });

    it('that is invalid, or was redacted, is refused, and so is stdin twice', async () => {
      const redacted = JSON.stringify([gitleaks({ Secret: 'REDACTED', Match: 'KEY=REDACTED' })]);
      for (const [text, why] of [
        ['no report', /is not JSON/],
        ['[1]', /entry 1 is not a finding/],
        ['{"level":"info","msg":"running"}', /entry 1 is not a finding/],
        [redacted, /entry 1 is redacted\. Run gitleaks without --redact/],
      ] as const) {
        write('report', text);
        const { stdout, stderr, code } = await scan(['--report', 'report']);
        assert.deepEqual([stdout, code], ['', 2]);
        assert.match(stderr, why);
      }
      assert.match((await scan(['--report', 'none'])).stderr, /could not be read \(ENOENT\)/);
      assert.match((await scan(['-', '--report', '-'])).stderr, /stdin can be read only once/);
    });

    it('may be empty', async () => {
      for (const input of ['[]', '']) assert.equal((await report(['--report', '-'], { input })).code, 0);
    });
  });
});
