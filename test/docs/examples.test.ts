import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { parse } from 'yaml';
import { testCli } from '../support/cli.ts';
import { BIN, cleanEnv, type Finished, finished, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

/** A folder as a pipeline has it: the keys' file, scripts of the project, and svc-api on the path. */
function workspace(): { folder: string; run: (script: string, input?: string) => Promise<Finished>; database: string } {
  const folder = tempFolder();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(BIN, join(bin, 'svc-api'));
  cpSync(join(ROOT, 'examples/keys.yaml'), join(folder, 'keys.yaml'));
  const scripts = { 'deploy.sh': 'env | grep -c "=svc_" > deployed', 'store-secret.sh': 'cat > stored' };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const database = join(folder, 'store', 'keys.sqlite');
  const path = [bin, dirname(process.execPath), process.env['PATH']].join(delimiter);
  const run = (script: string, input = '') => {
    const env = cleanEnv({ PATH: path, SVC_API_DATABASE: database, RUNNER_TEMP: folder });
    const child = spawn('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env });
    child.stdin.end(input);
    return finished(child);
  };
  return { folder, run, database };
}

const example = (path: string) => readFileSync(join(ROOT, 'examples', path), 'utf8');

describe('the examples', () => {
  it('for GitHub Actions run nothing of a pull request from a fork, on a runner that has the key store', () => {
    const { jobs, permissions } = parse(example('github-actions/deploy.yml')) as {
      jobs: Record<string, { if: string }>;
      permissions: object;
    };
    const own = 'github.event.pull_request.head.repo.full_name == github.repository';
    assert.deepEqual(
      Object.values(jobs).map((job) => job.if),
      [`github.event_name == 'pull_request' && ${own}`, "github.event_name == 'push'"],
    );
    assert.deepEqual(permissions, { contents: 'read' });
  });

  if (existsSync('/usr/bin/systemd-analyze')) {
    it('for systemd are valid, and leave little to attack', async () => {
      const unit = join(ROOT, 'examples/systemd/svc-api.service');
      const analyze = (...args: string[]) => finished(spawn('systemd-analyze', [...args, unit]));
      assert.deepEqual(await analyze('verify'), { stdout: '', stderr: '', code: 0, signal: null });
      // The exposure in tenths, from 0 to 100.
      assert.equal((await analyze('security', '--offline=true', '--threshold=20')).code, 0);
    });
  }

  it('for GitHub Actions work: a plan, the keys, and a deployment', async () => {
    const { jobs } = parse(example('github-actions/deploy.yml')) as {
      jobs: Record<string, { steps: { run?: string }[] }>;
    };
    const { folder, run } = workspace();
    await run('git init --quiet . && svc-api apikey create --name Other --roles GUEST');
    for (const job of ['plan', 'deploy']) {
      for (const step of jobs[job]!.steps) {
        if (step.run === undefined) continue;
        const { code, stderr, stdout } = await run(step.run);
        assert.equal(code, 0, `${step.run}\n${stdout}${stderr}`);
      }
    }
    assert.equal(readFileSync(join(folder, 'deployed'), 'utf8'), '1\n');
    assert.match(readFileSync(join(folder, 'keys', 'CI deploy'), 'utf8'), /^svc_/);
  });

  it('for GitLab CI work: grants are checked, a deployment, a rotation', async () => {
    const pipeline = parse(example('gitlab-ci/.gitlab-ci.yml')) as Record<
      string,
      { script?: string[]; after_script?: string[] }
    >;
    const { folder, run, database } = workspace();
    await testCli(database).given('CI deploy');
    const jobs = Object.values(pipeline).filter(({ script }) => script !== undefined);
    assert.equal(jobs.length, 3);
    for (const { script, after_script: after = [] } of jobs) {
      const { code, stderr, stdout } = await run([...script!, ...after].join('\n'));
      assert.equal(code, 0, `${script!.join('\n')}\n${stdout}${stderr}`);
    }
    assert.equal(readFileSync(join(folder, 'deployed'), 'utf8'), '1\n');
    assert.match(readFileSync(join(folder, 'stored'), 'utf8'), /^svc_/);
    assert.ok(!existsSync(join(folder, 'new-secret')));
  });

  it('for Ansible work, and tell what changed', async () => {
    const [play] = parse(example('ansible/keys.yml')) as [{ tasks: Record<string, { argv: string[] }>[] }];
    const { folder, run } = workspace();
    const commands = play.tasks.map((task) =>
      task['ansible.builtin.command']!.argv.map((word) => word.replace('/etc/service', folder)),
    );
    assert.equal(commands.length, 3);
    const quoted = (words: string[]) => words.map((word) => `'${word}'`).join(' ');
    for (const changes of [true, false]) {
      for (const command of commands) {
        const { code, stdout, stderr } = await run(quoted(command));
        assert.equal(code, 0, stdout + stderr);
        if (!command.includes('apply')) continue;
        const { created, updated, deleted } = JSON.parse(stdout) as Record<string, number>;
        assert.equal(created! + updated! + deleted! > 0, changes);
        assert.ok(!stdout.includes('svc_'));
      }
    }
  });

  it('for Terraform works as an external data source: JSON in, flat strings out', async () => {
    const { run, database } = workspace();
    await testCli(database).given('CI deploy');
    const { stdout, code, stderr } = await run(
      `sh '${join(ROOT, 'examples/terraform/key.sh')}'`,
      '{"name":"CI deploy"}',
    );
    assert.equal(code, 0, stderr);
    const facts = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual(
      [facts['name'], facts['status'], facts['expiresAt'], facts['roles']],
      ['CI deploy', 'ACTIVE', 'never', 'VIEWER'],
    );
    for (const value of Object.values(facts)) assert.equal(typeof value, 'string');
    assert.notEqual((await run(`sh '${join(ROOT, 'examples/terraform/key.sh')}'`, '{"name":"Nobody"}')).code, 0);
    assert.match(example('terraform/main.tf'), /program = \["sh", "\$\{path\.module\}\/key\.sh"\]/);
  });
});
