import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, cpSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { parseConfig } from '../../src/config/load-config.ts';
import { testCli, UUID } from '../support/cli.ts';
import { postJson } from '../features/consent/support/consent.ts';
import { changeDirectly } from '../support/direct.ts';
import { FakeCluster } from '../support/fake-cluster.ts';
import { startIssuer } from '../support/issuer.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { type Finished, finished, ROOT } from '../support/process.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';
import { startServe } from '../support/serve.ts';
import { startTestService } from '../support/server.ts';
import { isAccepted } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';

/** A folder as in a CI job: the file of keys, the project's scripts, and svc-api in the PATH. */
function workspace(): { folder: string; run: (script: string, input?: string) => Promise<Finished>; database: string } {
  const folder = tempFolder();
  cpSync(join(ROOT, 'examples/keys.yaml'), join(folder, 'keys.yaml'));
  const scripts = { 'deploy.sh': 'env | grep -c "=svc_" > deployed', 'store-secret.sh': 'cat > stored' };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const database = join(folder, 'store', 'keys.sqlite');
  const env = { PATH: pathWithCli(folder), SVC_API_DATABASE: database, SECRETS: join(folder, 'keys') };
  return { folder, run: (script, input) => runBlock(script, folder, env, input), database };
}

/** Moves the creation and expiry of a store's keys back by days. */
function letAge(database: string, days: number): Promise<void> {
  const [created, ends] = ['created_at', 'expires_at'].map((name) => `${name} = ${name} - ${days * 86_400_000}`);
  return changeDirectly(database, `update api_keys set ${created}, ${ends} where managed = 1`);
}

const example = (path: string) => readFileSync(join(ROOT, 'examples', path), 'utf8');

/** Runs the last step of the reusable action. Its inputs are variables and never part of the script. */
async function runsAction(folder: string, env: NodeJS.ProcessEnv, server: string): Promise<void> {
  const { runs } = parse(example('github-actions/with-key/action.yml')) as {
    runs: { steps: { run?: string; env?: Record<string, string> }[] };
  };
  const { run, env: inputs } = runs.steps.at(-1)!;
  assert.deepEqual(inputs, { SERVER: '${{ inputs.server }}', COMMAND: '${{ inputs.run }}' });
  const command = 'printenv API_KEY | grep -c "^svc_" > "by action"';
  const { code, stderr } = await runBlock(run!, folder, { ...env, SERVER: server, COMMAND: command });
  assert.equal(code, 0, stderr);
  assert.equal(readFileSync(join(folder, 'by action'), 'utf8'), '1\n');
}

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

  it('for systemd are valid, and leave little to attack', async function () {
    needsPrograms(this, 'systemd-analyze');
    const units = ['svc-api.service', 'svc-api.socket', 'svc-api-edge.service'];
    const [service, socket, edge] = units.map((name) => join(ROOT, 'examples/systemd', name));
    const analyze = (...args: string[]) => finished(spawn('systemd-analyze', args));
    const valid = { stdout: '', stderr: '', code: 0, signal: null };
    for (const paths of [[service!], [socket!, service!], [edge!]])
      assert.deepEqual(await analyze('verify', ...paths), valid);
    // `systemd-analyze` gives the exposure in tenths, from 0 to 100.
    for (const unit of [service!, edge!])
      assert.equal((await analyze('security', '--offline=true', '--threshold=20', unit)).code, 0);
  });

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

  it('for a pipeline elsewhere work: two variables are all that it has', async () => {
    const { jobs, env } = parse(example('remote/apply.yml')) as {
      jobs: Record<string, { steps: { run?: string }[] }>;
      env: Record<string, string>;
    };
    assert.deepEqual(Object.keys(env), ['SVC_API_SERVER', 'SVC_API_KEY']);
    const folder = tempFolder();
    const database = join(folder, 'keys.sqlite');
    const PATH = pathWithCli(folder);
    cpSync(join(ROOT, 'examples/remote/keys.yaml'), join(folder, 'keys.yaml'));
    writeFileSync(join(folder, 'store-secret.sh'), '#!/bin/sh\ncat > "stored $1"\n', { mode: 0o755 });
    const [, permissions = ''] = /--permissions (\S+)/.exec(example('remote/apply.yml'))!;
    const { key } = await testCli(database).given('Pipeline', { permissions: permissions.split(',') });
    await testCli(database).given('Another');
    const server = await startServe(database);
    const variables = { SVC_API_SERVER: server.url, SVC_API_KEY: key };
    for (const job of ['plan', 'apply', 'plan', 'apply']) {
      for (const { run: script } of jobs[job]!.steps) {
        if (script === undefined || script.startsWith('npm install')) continue;
        const result = await runBlock(script, folder, { PATH, RUNNER_TEMP: join(folder, 'temp'), ...variables });
        assert.equal(result.code, 0, result.stdout + result.stderr);
      }
    }
    await server.stop();
    for (const name of ['CI deploy', 'Night report'])
      assert.ok(await isAccepted(database, readFileSync(join(folder, `stored ${name}`), 'utf8').trim()), name);
  });

  it('on hosted runners work: the token of the platform is all that they need', async () => {
    const platforms = [
      ['github', 'github-actions/hosted.yml', { repository_id: '123456', environment: 'production' }],
      ['gitlab', 'gitlab-ci/hosted.yml', { project_id: '123456', ref_path: 'refs/heads/main', ref_protected: 'true' }],
    ] as const;
    for (const [preset, path, claims] of platforms) {
      const issuer = await startIssuer();
      const comment = example(path).match(/^#   .*$/gm)!;
      const rules = comment.map((line) => line.replace(/^#   /, '')).join('\n');
      const ofIssuer = rules.replace(`issuer: ${preset}`, `issuer: { preset: ${preset}, url: "${issuer.url}" }`);
      const config = await parseConfig({ path: '/svc-api.yaml', text: ofIssuer });
      assert.equal((await parseConfig({ path: '/svc-api.yaml', text: rules })).federation.length, 1);
      const test = await startTestService({ app: { config } });
      test.time.now = Date.now();
      const exp = Math.floor(test.time.now / 1000) + 300;
      const claimed = { aud: 'https://keys.example.org', sub: 'job', exp, ...claims };
      const sign = () => issuer.sign({ ...claimed, jti: randomUUID() });
      const token = await sign();
      const { jobs, deploy } = parse(example(path)) as {
        jobs?: { deploy: { steps: { run?: string }[] } };
        deploy?: { script: string[] };
      };
      const scripts = deploy?.script ?? jobs!.deploy.steps.flatMap(({ run }) => run ?? []);
      const script = scripts.find((line) => line.startsWith('svc-api'))!;
      assert.equal(blockWith('--federated', 'docs/reference.md').trim(), script);
      const folder = tempFolder();
      writeFileSync(join(folder, 'deploy.sh'), '#!/bin/sh\nenv | grep -c "=svc_" > deployed\n', { mode: 0o755 });
      const env = { PATH: pathWithCli(folder), SVC_API_ID_TOKEN: token, no_proxy: '*' };
      const { code, stderr } = await runBlock(script.replace('https://keys.example.org', test.url), folder, env);
      assert.equal(code, 0, stderr);
      assert.equal(readFileSync(join(folder, 'deployed'), 'utf8'), '1\n');
      if (preset === 'github') await runsAction(folder, { ...env, SVC_API_ID_TOKEN: await sign() }, test.url);
      await test.stop();
      await issuer.stop();
    }
  });

  it('for Kubernetes let a pod show its token as often as its containers start', async () => {
    const issuer = await startIssuer();
    const folder = tempFolder();
    writeFileSync(join(folder, 'jwks.json'), JSON.stringify({ keys: issuer.keys }), { mode: 0o644 });
    const text = blockWith('preset: kubernetes', 'examples/kubernetes/README.md', 'yaml');
    const [, iss] = /url: (\S+)/.exec(text)!;
    const config = await parseConfig({ path: join(folder, 'svc-api.yaml'), text });
    const test = await startTestService({ app: { config } });
    test.time.now = Date.now();
    const pod = blockWith('serviceAccountToken', 'examples/kubernetes/README.md', 'yaml');
    const { spec } = parse(pod) as {
      spec: { volumes: { projected: { sources: { serviceAccountToken: { audience: string } }[] } }[] };
    };
    const token = await issuer.sign({
      iss,
      aud: [spec.volumes[0]!.projected.sources[0]!.serviceAccountToken.audience],
      sub: 'system:serviceaccount:apps:reports',
      jti: randomUUID(),
      exp: Math.floor(test.time.now / 1000) + 600,
      'kubernetes.io': { namespace: 'apps', serviceaccount: { name: 'reports', uid: randomUUID() } },
    });
    for (const _ of ['first', 'second']) {
      const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: token };
      const { status, body } = await postJson(`${test.url}/oauth/token`, form);
      assert.deepEqual([status, body['scope']], [200, 'SERVICES:READ_ANY'], JSON.stringify(body));
    }
    await test.stop();
    await issuer.stop();
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

  it('for GitLab CI fail if a key may do more than it must', async () => {
    const pipeline = parse(example('gitlab-ci/.gitlab-ci.yml')) as Record<string, { script: string[] }>;
    const { run, database } = workspace();
    await testCli(database).given('CI deploy', { roles: ['ADMIN'] });
    const { code, stdout } = await run(pipeline['least privilege']!.script.join('\n'));
    assert.deepEqual([code, stdout.split('\n').at(-2)], [1, 'yes: role ADMIN']);
  });

  it('for GitLab CI take a rotation back whose secret could not be stored, so that the next one works', async () => {
    const { rotate } = parse(example('gitlab-ci/.gitlab-ci.yml')) as Record<string, { script: string[] }>;
    const { folder, run, database } = workspace();
    const { key } = await testCli(database).given('CI deploy');
    const script = rotate!.script.join('\n');
    writeFileSync(join(folder, 'store-secret.sh'), '#!/bin/sh\nexit 7\n');
    assert.equal((await run(script)).code, 1);
    assert.equal(await isAccepted(database, key), true);
    writeFileSync(join(folder, 'store-secret.sh'), '#!/bin/sh\ncat > stored\n');
    const { code, stderr } = await run(script);
    assert.equal(code, 0, stderr);
    assert.equal(await isAccepted(database, readFileSync(join(folder, 'stored'), 'utf8').trim()), true);
  });

  describe('for Ansible', () => {
    interface Task {
      become_user?: string;
      block?: Task[];
      'ansible.builtin.command'?: { argv: string[] };
    }
    const [play] = parse(example('ansible/keys.yml')) as [{ tasks: Task[]; environment: Record<string, string> }];
    const tasks = play.tasks.flatMap(({ block, ...outer }) => block?.map((task) => ({ ...outer, ...task })) ?? [outer]);
    const commands = tasks.filter((task) => task['ansible.builtin.command'] !== undefined);

    it('work, and tell what changed', async () => {
      const { folder, run } = workspace();
      const quoted = (words: string[]) => words.map((word) => `'${word.replace('{{ folder }}', folder)}'`).join(' ');
      assert.equal(commands.length, 3);
      for (const changes of [true, false]) {
        for (const task of commands) {
          const { argv } = task['ansible.builtin.command']!;
          const { code, stdout, stderr } = await run(quoted(argv));
          assert.equal(code, 0, stdout + stderr);
          if (!argv.includes('apply')) continue;
          const { created, updated, deleted } = JSON.parse(stdout) as Record<string, number>;
          assert.equal(created! + updated! + deleted! > 0, changes);
          assert.ok(!stdout.includes('svc_'));
        }
      }
    });

    it('run every command as the user who owns the store', () => {
      assert.deepEqual(
        commands.map((task) => task.become_user),
        ['svc-api', 'svc-api', 'svc-api'],
      );
    });

    it('play twice on a host: the second time, nothing changes', async function () {
      needsRoot(this);
      needsPrograms(this, 'ansible-playbook', 'sudo');
      const { folder, run } = workspace();
      chmodSync(folder, 0o755);
      const store = join(folder, 'service');
      const playbook = example('ansible/keys.yml')
        .replaceAll(/: svc-api\b/g, ': nobody')
        .replaceAll('group: nobody', 'group: nogroup')
        .replace('folder: /var/lib/svc-api', `folder: ${store}`)
        .replace('environment:', "$&\n    PATH: \"{{ lookup('env', 'PATH') }}\"");
      writeFileSync(join(folder, 'keys.yml'), playbook);
      writeFileSync(join(folder, 'hosts.ini'), '[services]\nhere ansible_connection=local\n');
      for (const changed of [3, 0]) {
        const { code, stdout, stderr } = await run(`HOME='${folder}' ansible-playbook -i hosts.ini keys.yml`);
        assert.equal(code, 0, stdout + stderr);
        assert.match(stdout, new RegExp(`^here .* ok=5 +changed=${changed} .* failed=0 `, 'm'));
      }
      for (const path of ['keys.sqlite', 'keys.yaml', 'secrets', 'secrets/CI deploy'])
        assert.equal(statSync(join(store, path)).uid, 65_534, path);
    });
  });

  describe('for Kubernetes, a job that keeps a Secret fresh', () => {
    interface Manifest {
      kind: string;
      metadata: { name: string };
      data?: Record<string, string>;
      rules?: object[];
      spec?: { jobTemplate: { spec: { template: { spec: { containers: [{ command: string[] }] } } } } };
    }
    const documents = parseAllDocuments(example('kubernetes/rotation.yaml')).map((each) => each.toJS() as Manifest);
    const of = (kind: string) => documents.find((each) => each.kind === kind)!;

    it('may change that Secret, and nothing else', () => {
      const { name } = of('Secret').metadata;
      assert.deepEqual(of('Role').rules, [
        { apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['get', 'patch'] },
      ]);
    });

    it('puts each new secret there; one that it cannot put is taken back, and made the next time', async function () {
      needsPrograms(this, 'kubectl');
      const { folder, database } = workspace();
      const path = [join(folder, 'bin'), process.env['PATH']].join(delimiter);
      for (const [name, text] of Object.entries(of('ConfigMap').data!)) writeFileSync(join(folder, name), text);
      const [, permissions = ''] = /--permissions (\S+)/.exec(example('kubernetes/rotation.yaml'))!;
      const { key } = await testCli(database).given('Rotation', { permissions: permissions.split(',') });
      const server = await startServe(database);
      const cluster = await FakeCluster.start();
      const [{ command }] = of('CronJob').spec!.jobTemplate.spec.template.spec.containers;
      const apply = (...more: string[]) => {
        const words = [...command, ...more].map((word) => `'${word.replace('/etc/svc-api-rotation', folder)}'`);
        writeFileSync(join(folder, 'kubeconfig'), cluster.config);
        const env = { SVC_API_SERVER: server.url, SVC_API_KEY: key, KUBECONFIG: join(folder, 'kubeconfig') };
        return runBlock(words.join(' '), folder, { PATH: path, HOME: folder, ...env });
      };
      try {
        cluster.isDown = true;
        const failed = await apply('--json');
        assert.equal((JSON.parse(failed.stdout) as { code: string }).code, 'OUTPUT_FAILED', failed.stderr);
        cluster.isDown = false;
        for (const days of [0, 31]) {
          await letAge(database, days);
          const { code, stdout, stderr } = await apply();
          assert.equal(code, 0, stderr);
          assert.match(stdout, days === 0 ? /\+ create "CI deploy"/ : /~ rotate "CI deploy"/);
          assert.equal(cluster.patches.length, 1);
          const { stringData } = JSON.parse(cluster.patches.pop()!) as { stringData: Record<string, string> };
          assert.deepEqual(Object.keys(stringData), ['CI-deploy']);
          assert.ok(await isAccepted(database, stringData['CI-deploy']!));
        }
      } finally {
        await cluster.stop();
        await server.stop();
      }
    });
  });

  describe('for Terraform, an external data source', () => {
    const ask = (run: (script: string, input: string) => Promise<Finished>, name: string) =>
      run(`node '${join(ROOT, 'examples/terraform/key.mjs')}'`, JSON.stringify({ name }));

    it('answers with flat strings, and no secret', async () => {
      const { run, database } = workspace();
      await testCli(database).given('CI deploy');
      const { stdout, code, stderr } = await ask(run, 'CI deploy');
      assert.equal(code, 0, stderr);
      const { id, prefix, ...facts } = JSON.parse(stdout) as Record<string, string>;
      assert.match(id!, UUID);
      assert.match(prefix!, /^svc_\w{12}_…$/);
      assert.deepEqual(facts, {
        name: 'CI deploy',
        status: 'ACTIVE',
        expiresAt: 'never',
        roles: 'VIEWER',
        permissions: '',
      });
    });

    const FAULTS = {
      Nobody: /"Nobody"/,
      'The "quoted" one': /The "quoted" one/,
      '--json': /--name/,
      '': /name/,
    };
    for (const [name, error] of Object.entries(FAULTS)) {
      it(`reports what is wrong with the name ${JSON.stringify(name)}, and fails`, async () => {
        const { run, database } = workspace();
        await testCli(database).given('CI deploy');
        const { stdout, code, stderr } = await ask(run, name);
        assert.deepEqual([stdout, code], ['', 1]);
        assert.match(stderr, error);
      });
    }

    it('reports that svc-api is not in the PATH', async () => {
      const { stdout, code, stderr } = await ask(
        (script, input) => workspace().run(`PATH='${dirname(process.execPath)}'; ${script}`, input),
        'CI deploy',
      );
      assert.deepEqual([stdout, stderr, code], ['', 'svc-api cannot be run: spawnSync svc-api ENOENT\n', 1]);
    });

    it('applies keys from a file, and again when they are due', async function () {
      needsPrograms(this, 'terraform');
      const { folder, run, database } = workspace();
      writeFileSync(join(folder, 'main.tf'), example('terraform/keys/main.tf'));
      const terraform = async (...args: string[]) => {
        const { code, stdout, stderr } = await run(`HOME='${folder}' terraform ${args.join(' ')} -no-color`);
        assert.equal(code, 0, stdout + stderr);
        return stdout;
      };
      await terraform('init');
      assert.match(await terraform('apply', '-auto-approve'), /Applied: 4 created/);
      await letAge(database, 92);
      const stdout = await terraform('apply', '-auto-approve');
      assert.match(stdout, /~ rotate "CI deploy" \(secret is 92 days old\)/);
      assert.match(stdout, /\+ renew "Night report"/);
      const secret = readFileSync(join(folder, 'secrets', 'CI deploy'), 'utf8').trim();
      assert.ok(await isAccepted(database, secret));
      assert.ok(!readFileSync(join(folder, 'terraform.tfstate'), 'utf8').includes('svc_'));
    });

    it('is called by its own program', () => {
      assert.match(example('terraform/main.tf'), /program = \["node", "\$\{path\.module\}\/key\.mjs"\]/);
    });
  });
});
