import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { parse } from 'yaml';
import { testCli, type TestCli } from '../support/cli.ts';
import { BIN, cleanEnv, type Finished, finished, ROOT } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { needsPrograms, pathOf } from '../support/skip.ts';
import { isAccepted } from '../support/stored.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const text = readFileSync(join(ROOT, 'docs/leaked-keys.md'), 'utf8');
const [revokeOps, undo, hook, inCi, inGit, revoke, verify] = Array.from(
  text.matchAll(/^```sh\n(.*?)^```$/gms),
  (match) => match[1]!,
) as [string, string, string, string, string, string, string];

describe('docs/leaked-keys.md', () => {
  let cli: TestCli;
  let folder: string;
  /** Runs a script in a repository, with svc-api in the PATH. */
  const run = async (script: string, env: NodeJS.ProcessEnv = {}): Promise<Finished> => {
    const path = [join(folder, '.git/bin'), dirname(process.execPath), process.env['PATH']].join(delimiter);
    const names = {
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@b',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@b',
    };
    return finished(
      spawn('sh', ['-c', script], {
        cwd: folder,
        env: cleanEnv({ PATH: path, SVC_API_DATABASE: cli.database, GIT_CONFIG_GLOBAL: '/dev/null', ...names, ...env }),
      }),
    );
  };
  beforeEach(async () => {
    cli = testCli();
    folder = tempFolder();
    mkdirSync(join(folder, '.git/bin'), { recursive: true });
    symlinkSync(BIN, join(folder, '.git/bin/svc-api'));
    await run('git init --quiet && git commit --quiet --allow-empty --message first');
  });

  it('has commands that revoke a key by its name, and by its secret', async () => {
    const { key } = await cli.given('Ops');
    const { code, stdout } = await run(revokeOps, { API_KEY: key });
    assert.equal(code, 0);
    assert.equal(stdout, 'API key "Ops" is disabled\nAPI key "Ops" was disabled already\n');
  });

  it("has commands that show and undo a key's changes", async () => {
    await cli.given('Ops');
    const unattended = undo.replace(/--undo-changes$/m, '--undo-changes --yes');
    const { code, stdout } = await run(unattended);
    assert.equal(code, 0);
    assert.match(stdout, /^~ update "Ops"\n.*\nPlan: 1 key to change.*\n~ update "Ops"\n.*\nUndone: 1 key changed/);
    assert.equal((await run(undo)).code, 2);
  });

  it('has a hook that lets no live key be committed', async () => {
    const { key } = await cli.given('CI deploy');
    assert.equal((await run(hook)).code, 0);
    writeFileSync(join(folder, 'notes'), `The key is ${key}.\n`);
    const refused = await run('git add notes && git commit --quiet --message second');
    assert.match(refused.stderr + refused.stdout, /-:\d+:13 {2}svc_\w{12}_… {2}ACTIVE {2}"CI deploy"\n/);
    assert.equal(refused.code, 1);
    await cli.run(['apikey', 'disable', 'CI deploy']);
    const { code, stderr } = await run('git commit --quiet --message second && git log --oneline | wc -l | grep -q 2');
    assert.equal(code, 0, stderr);
  });

  it('has a line for CI that fails for any key, without a store', async () => {
    const { key } = await cli.given('CI deploy');
    const withoutStore = { SVC_API_DATABASE: tempStore() };
    assert.equal((await run(inCi, withoutStore)).code, 0);
    writeFileSync(join(folder, 'notes'), `\0${key}`);
    await run('git add notes');
    const { stdout, code } = await run(inCi, withoutStore);
    assert.deepEqual([stdout, code], ['', 1]);
  });

  it('has lines for all that is not ignored, and all that was ever committed', async () => {
    const { key } = await cli.given('CI deploy');
    writeFileSync(join(folder, 'notes'), `\0${key}`);
    await run(
      'git add . && git commit --quiet --message leak && git rm --quiet notes && git commit --quiet --message gone',
    );
    writeFileSync(join(folder, 'other'), key);
    const { stdout, code } = await run(inGit);
    assert.match(stdout, /^other:1:1 {2}svc_\w{12}_… {2}ACTIVE {2}"CI deploy"\n-:\d+:\d+ {2}svc_\w{12}_… {2}ACTIVE/);
    assert.equal(code, 3);
  });

  it('names rules for other scanners, which have the form of a key', async () => {
    const { key } = await cli.given('CI deploy');
    for (const [file, pattern] of [
      ['gitleaks.toml', /^regex = '{3}(.*)'{3}$/m],
      ['trufflehog.yaml', /^ *key: '(.*)'$/m],
      ['pre-commit.yaml', /rb"(.*)"/],
    ] as const) {
      assert.ok(text.includes(`../examples/scanners/${file}`));
      const rule = new RegExp(pattern.exec(readFileSync(join(ROOT, 'examples/scanners', file), 'utf8'))![1]!);
      assert.equal(rule.exec(`KEY="${key}"`)![0], key);
      assert.equal(rule.test(key.slice(0, -1)), false);
    }
  });

  // Debian has no gitleaks package.
  if (pathOf('gitleaks'))
    it('finds with gitleaks a secret that a later commit removed', async () => {
      const { key } = await cli.given('CI deploy');
      writeFileSync(join(folder, 'notes'), `KEY=${key}\n`);
      await run('git add . && git commit --quiet --message leak && git rm --quiet notes && git commit --quiet -m gone');
      const config = join(ROOT, 'examples/scanners/gitleaks.toml');
      const { stdout, code } = await run(
        `gitleaks git --config ${config} --report-format json --report-path - . | svc-api apikey scan --report -`,
      );
      assert.match(stdout, /^[\da-f]{40}:notes:\d+:\d+ {2}svc_\w{12}_… {2}ACTIVE {2}"CI deploy"\n/);
      assert.equal(code, 3);
    });

  describe('has a hook for pre-commit, which', () => {
    const config = parse(readFileSync(join(ROOT, 'examples/scanners/pre-commit.yaml'), 'utf8')) as {
      repos: [{ hooks: [{ entry: string }] }];
    };

    it('finds keys by form and checksum, and says no secret', async () => {
      const { key } = await cli.given('CI deploy');
      const typo = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
      writeFileSync(join(folder, 'leaks'), `first line\nKEY=${key}\n`);
      writeFileSync(join(folder, 'harmless'), `${typo}\n${key.slice(0, -1)}\n`);
      const { entry } = config.repos[0].hooks[0];
      const { stdout, code, stderr } = await run(`${entry.trimEnd()} leaks harmless`);
      assert.deepEqual([stdout, code], [`leaks:2: ${key.slice(0, 17)} is an API key\n`, 1], stderr);
      assert.equal((await run(`${entry.trimEnd()} harmless`)).code, 0);
    });

    it('stops a commit', async function () {
      needsPrograms(this, 'pre-commit');
      const { key } = await cli.given('CI deploy');
      writeFileSync(join(folder, 'notes'), `KEY=${key}\n`);
      copyFileSync(join(ROOT, 'examples/scanners/pre-commit.yaml'), join(folder, '.pre-commit-config.yaml'));
      const env = { HOME: folder, PRE_COMMIT_HOME: join(folder, '..', 'pre-commit') };
      const committed = await run('git add . && pre-commit install && git commit --quiet --message leak', env);
      assert.match(committed.stderr + committed.stdout, /notes:1: svc_\w{12}_ is an API key/);
      assert.notEqual(committed.code, 0);
      writeFileSync(join(folder, 'notes'), 'none\n');
      assert.equal((await run('git add . && git commit --quiet --message none', env)).code, 0);
    });
  });

  it('has a request that ends a key', async () => {
    const { key } = await cli.given('CI deploy');
    const server = await startServe(cli.database);
    try {
      const { stdout, stderr } = await run(revoke.replace('http://127.0.0.1:4000', server.url), { API_KEY: key });
      assert.equal(stdout, '{}', stderr);
      assert.ok(!(await isAccepted(cli.database, key)));
    } finally {
      await server.stop();
    }
  });

  it('has a check before a deployment', async () => {
    writeFileSync(join(folder, 'deploy.sh'), '#!/bin/sh\necho deployed\n', { mode: 0o755 });
    const viewer = await cli.given('Viewer');
    const updater = await cli.given('Updater', { permissions: ['SERVICES:UPDATE_ANY'] });
    const results = await Promise.all([viewer.key, updater.key, 'x'].map((API_KEY) => run(verify, { API_KEY })));
    assert.deepEqual(
      results.map(({ code, stdout }) => [code, stdout.includes('deployed')]),
      [
        [4, false],
        [0, true],
        [3, false],
      ],
    );
  });
});
