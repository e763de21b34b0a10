import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filesInWorkTree } from '../../src/cli/scan/git.ts';
import { GitProgram } from '../../src/cli/scan/git-program.ts';
import { cleanEnv } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

/** Settings of git's documentation that name a program, a path or a place to fetch from. */
const SETTINGS = `
  alias.ls-files alias.check-ignore browser.x.cmd browser.x.path core.alternateRefsCommand core.askPass
  core.attributesFile core.editor core.excludesFile core.fsmonitor core.gitProxy core.hooksPath core.pager
  core.sshCommand core.worktree credential.helper diff.external diff.x.command diff.x.textconv diff.orderFile
  difftool.x.cmd difftool.x.path filter.x.clean filter.x.smudge filter.x.process format.signatureFile
  fsmonitor.socketDir gpg.program gpg.x509.program gpg.ssh.program gpg.ssh.allowedSignersFile
  gpg.ssh.defaultKeyCommand gpg.ssh.revocationFile guitool.x.cmd http.cookieFile http.proxy http.sslCAInfo
  include.path includeIf.gitdir:/.path init.templateDir interactive.diffFilter mailmap.file man.x.cmd man.x.path
  merge.x.driver mergetool.x.cmd mergetool.x.path pager.ls-files pager.check-ignore remote.origin.receivepack
  remote.origin.uploadpack remote.origin.url remote.origin.vcs sendemail.tocmd sequence.editor submodule.inner.update
  submodule.inner.url uploadpack.packObjectsHook trace2.eventTarget trace2.normalTarget url.x.insteadOf
`
  .trim()
  .split(/\s+/);

let folder: string;
/** A program that leaves a file when it is run, and a pipe that blocks whoever reads it. */
let program: string;
let pipe: string;

const at = (path: string) => join(folder, path);
const ran = () => existsSync(`${program}.ran`);
const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: folder, env: cleanEnv({ GIT_CONFIG_GLOBAL: '/dev/null' }), stdio: 'pipe' });
const makePipe = (path: string) => {
  rmSync(path, { recursive: true, force: true });
  execFileSync('mkfifo', [path]);
};

/** What a scan reads, and what it reports as unreadable. It runs nothing, and leaves nothing in the temporary folder. */
async function scanned(limitMs?: number): Promise<{ files: string[]; unreadable: string[] }> {
  const unreadable: string[] = [];
  const walk = filesInWorkTree(Buffer.from(folder), new GitProgram(limitMs), (path, error) =>
    unreadable.push(`${String(path)}: ${(error as Error).message}`),
  );
  const files: string[] = [];
  for await (const path of walk) files.push(String(path).slice(folder.length + 1));
  assert.ok(!ran(), 'a program of the repository ran');
  return { files: files.toSorted(), unreadable };
}

const FILES = ['.gitattributes', '.gitignore', 'kept', 'sub/tracked.log'];

async function assertUnaffected(): Promise<void> {
  assert.deepEqual(await scanned(), { files: FILES, unreadable: [] });
}

describe('scan --git of a repository that somebody else made', function () {
  // Each of these would block for ever, if it did.
  this.timeout(30_000);

  let fresh: string;
  before(() => {
    pipe = join(tempFolder(), 'pipe');
    makePipe(pipe);
    folder = fresh = tempFolder();
    git('init', '--quiet');
    mkdirSync(at('sub'));
    for (const path of ['kept', 'ignored.log', 'sub/ignored.log', 'sub/tracked.log']) writeFileSync(at(path), 'text');
    writeFileSync(at('.gitignore'), '*.log\n');
    writeFileSync(at('.gitattributes'), '* filter=x diff=x merge=x\n');
    git('add', '--force', 'sub/tracked.log');
    git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '--message', 'first');
    writeFileSync(at('sub/tracked.log'), 'changed');
  });
  beforeEach(() => {
    [folder, program] = [tempFolder(), join(tempFolder(), 'program')];
    writeFileSync(program, '#!/bin/sh\ntouch "$0.ran"\n', { mode: 0o755 });
    cpSync(fresh, folder, { recursive: true });
  });

  it('sees that a program ran', () => {
    execFileSync(program);
    assert.ok(ran());
  });

  for (const setting of SETTINGS) {
    it(`neither runs nor reads what ${setting} names`, async () => {
      for (const value of [program, `!${program}`, `ext::${program}`, pipe]) {
        // As another file, whose settings do not apply to this call.
        execFileSync('git', ['config', '--file', at('.git/config'), '--replace-all', setting, value], { cwd: '/' });
        await assertUnaffected();
      }
    });
  }

  it('runs nothing for all settings at once', async () => {
    const names = execFileSync('git', ['help', '--config'], { encoding: 'utf8' }).match(/^[a-z]\S*\.\S+$/gim) ?? [];
    assert.ok(names.length > 300);
    const lines = names.map((name) => {
      const [section, ...rest] = name.replaceAll(/[*<>]/g, 'x').split('.');
      const [key, ...subsection] = rest.toReversed();
      const head = subsection.length > 0 ? `[${section} "${subsection.toReversed().join('.')}"]` : `[${section}]`;
      return `${head}\n\t${key} = ${program}\n`;
    });
    writeFileSync(at('.git/config'), lines.join(''), { flag: 'a' });
    await assertUnaffected();
  });

  it('fetches no object that is missing from a promisor', async () => {
    git('config', 'extensions.partialClone', 'origin');
    git('config', 'remote.origin.promisor', 'true');
    git('config', 'remote.origin.url', folder);
    git('config', 'remote.origin.uploadpack', program);
    rmSync(at('.git/objects'), { recursive: true });
    mkdirSync(at('.git/objects'));
    await assertUnaffected();
  });

  it('runs no hook', async () => {
    const hooks = 'fsmonitor-watchman post-checkout post-index-change pre-commit reference-transaction';
    for (const hook of hooks.split(' ')) symlinkSync(program, at(`.git/hooks/${hook}`));
    await assertUnaffected();
  });

  for (const path of ['.git/info/exclude', '.git/info/attributes', '.git/objects/info/alternates', '.git/config']) {
    it(`does not block on a pipe at ${path}`, async () => {
      makePipe(at(path));
      await assertUnaffected();
    });
  }

  for (const path of ['.git/HEAD', '.git/commondir', '.git/packed-refs', '.git/config.worktree', '.gitmodules']) {
    it(`does not block on a pipe at ${path}`, async () => {
      makePipe(at(path));
      await assertUnaffected();
    });
  }

  it('does not block on a pipe for its ignore rules, and reads more then', async () => {
    makePipe(at('.gitignore'));
    const { files, unreadable } = await scanned();
    assert.deepEqual(
      [files, unreadable],
      [['.gitattributes', 'ignored.log', 'kept', 'sub/ignored.log', 'sub/tracked.log'], []],
    );
  });

  it('follows no link to ignore rules, and reads more then', async () => {
    const elsewhere = join(tempFolder(), 'rules');
    writeFileSync(elsewhere, '*\n');
    rmSync(at('.gitignore'));
    symlinkSync(elsewhere, at('.gitignore'));
    assert.ok((await scanned()).files.includes('kept'));
  });

  it('reports a pipe in place of the index, and does not block', async () => {
    makePipe(at('.git/index'));
    assert.deepEqual(await scanned(), { files: [], unreadable: [`${folder}: its index is not a regular file`] });
  });

  it('does not block on a nested repository of pipes', async () => {
    mkdirSync(at('inner/.git'), { recursive: true });
    for (const name of ['HEAD', 'config', 'commondir']) makePipe(at(`inner/.git/${name}`));
    writeFileSync(at('inner/key'), 'text');
    assert.deepEqual(await scanned(), { files: [...FILES, 'inner/key'].toSorted(), unreadable: [] });
  });

  it('runs no program that a nested repository names, nor one of a bare repository among the files', async () => {
    git('init', '--quiet', 'inner');
    git('init', '--quiet', '--bare', 'bare');
    for (const config of ['inner/.git/config', 'bare/config'])
      writeFileSync(at(config), `[core]\n\tfsmonitor = ${program}\n\tbare = false\n\tworktree = ${folder}\n`);
    writeFileSync(at('inner/key'), 'text');
    const { files, unreadable } = await scanned();
    assert.ok(files.includes('inner/key') && files.includes('bare/config'));
    assert.deepEqual(unreadable, []);
  });

  for (const [what, pointer] of [
    ['to itself', 'gitdir: .git\n'],
    ['to a device', 'gitdir: /dev/zero\n'],
    ['nowhere', 'gitdir: ../none\n'],
    ['that is no pointer', 'text'],
  ] as const) {
    it(`takes a folder with a pointer ${what} for a plain one`, async () => {
      mkdirSync(at('inner'));
      writeFileSync(at('inner/.git'), pointer);
      writeFileSync(at('inner/key'), 'text');
      const { files, unreadable } = await scanned();
      assert.ok(files.includes('inner/key'));
      assert.deepEqual(unreadable, []);
    });
  }

  it('looks at another work tree of a repository with the rules of both', async () => {
    const other = tempFolder();
    git('worktree', 'add', '--quiet', join(other, 'linked'));
    writeFileSync(at('.git/info/exclude'), 'excluded\n');
    folder = join(other, 'linked');
    writeFileSync(at('excluded'), 'text');
    writeFileSync(at('.gitignore'), '*.txt\n');
    writeFileSync(at('ignored.txt'), 'text');
    assert.deepEqual(await scanned(), { files: ['.gitignore', 'sub/tracked.log'], unreadable: [] });
  });

  it('gives up a pattern that takes for ever', async () => {
    writeFileSync(at('.gitignore'), `${'**/*a*/'.repeat(16)}b\n`);
    mkdirSync(at('aaaaaaaaaaaaaaaa/'.repeat(40)), { recursive: true });
    const { unreadable } = await scanned(500);
    assert.deepEqual(unreadable, [`${folder}: git took too long`]);
  });

  it('uses no variable of git from the environment but those for the configuration of the user', async () => {
    process.env['GIT_EXTERNAL_DIFF'] = process.env['GIT_EXEC_PATH'] = process.env['GIT_SSH_COMMAND'] = program;
    try {
      await assertUnaffected();
    } finally {
      for (const name of ['GIT_EXTERNAL_DIFF', 'GIT_EXEC_PATH', 'GIT_SSH_COMMAND']) delete process.env[name];
    }
  });

  it('runs a git of the path, never one of the repository', async () => {
    writeFileSync(at('git'), `#!/bin/sh\n${program}\n`);
    chmodSync(at('git'), 0o755);
    const before = process.cwd();
    process.chdir(folder);
    try {
      assert.deepEqual((await scanned()).files, [...FILES, 'git'].toSorted());
    } finally {
      process.chdir(before);
    }
  });

  it('finds what git itself lists', async () => {
    for (const [path, rules] of [
      ['a/.gitignore', '/x\n!*.log\nb/\n'],
      ['a/b/c/.gitignore', '!*\n'],
      ['d e/[f]/.gitignore', '*\n!.gitignore\n'],
    ] as const) {
      mkdirSync(at(join(path, '..')), { recursive: true });
      writeFileSync(at(path), rules);
    }
    for (const path of ['a/x', 'a/y.log', 'a/b/z', 'a/b/c/x', 'd e/[f]/g', 'd e/x', ':(top)x', 'new\nline', '*'])
      writeFileSync(at(path), 'text');
    git('add', '--force', 'a/b/z');
    const listed = String(git('ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'));
    assert.deepEqual((await scanned()).files, listed.split('\0').slice(0, -1).toSorted());
  });

  after(() => {
    const left = readdirSync(tmpdir()).filter((name) => name.startsWith('svc-api-scan-'));
    assert.deepEqual(left, [], 'copies are left in the temporary folder');
  });
});
