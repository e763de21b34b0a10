import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parseConfig } from '../../src/config/load-config.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { postJson } from '../features/consent/support/consent.ts';
import { configFile } from '../support/config-file.ts';
import { startIssuer, type TestIssuer } from '../support/issuer.ts';
import { cleanEnv, runCli } from '../support/process.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const AUDIENCE = 'https://keys.example.org';
const ASKS =
  'fetch(process.env.URL + "/graphql", { method: "POST", body: JSON.stringify({ query: "{ online }" }), ' +
  'headers: { "content-type": "application/json", authorization: "Bearer " + process.env.API_KEY } })' +
  '.then((answer) => console.log(answer.status, process.env.SVC_API_ID_TOKEN))';

describe('a command with a key for the token of a platform', () => {
  let issuer: TestIssuer;
  let test: TestService;
  let text: string;
  let folder: string;
  beforeEach(async () => {
    issuer = await startIssuer();
    folder = tempFolder();
    text = `publicUrl: ${AUDIENCE}
federation:
  - { name: deploys, issuer: { url: "${issuer.url}" }, when: { sub: deploy, ref: [main, release] }, grant: [role:VIEWER] }
  - { name: others, issuer: { url: "${issuer.url}/", jwks: "${issuer.url}/keys" }, when: { sub: "1" }, grant: [role:GUEST] }
`;
    test = await startTestService({ app: { config: await parseConfig({ path: '/svc-api.yaml', text }) } });
    test.time.now = Date.now();
  });
  afterEach(async () => {
    await test.stop();
    await issuer.stop();
  });
  const token = (claims: Record<string, unknown> = {}) =>
    issuer.sign({ aud: AUDIENCE, sub: 'deploy', ref: 'main', exp: Math.floor(Date.now() / 1000) + 300, ...claims });
  const exec = (env: NodeJS.ProcessEnv, flags: string[] = [], command = ['node', '-e', ASKS]) =>
    runCli(['apikey', 'exec', '--federated', '--server', test.url, ...flags, '--', ...command], {
      env: cleanEnv({ no_proxy: '*', URL: test.url, ...env }),
    });
  const keys = async () => (await test.keys.list({}, OPERATOR)).keys.map(({ name }) => name);

  it('has it while it runs, without the token, and the key ends with it', async () => {
    const { code, stdout, stderr } = await exec({ SVC_API_ID_TOKEN: await token() });
    assert.deepEqual([code, stdout, stderr], [0, '200 undefined\n', '']);
    assert.deepEqual(await keys(), ['deploys']);
    const [entry] = await test.keys.audit.read({ action: 'CONSENT_REVOKE' }, OPERATOR);
    assert.match(entry!.apiKey!.name, /^deploys \w{8}$/);
    const failing = await exec({ SVC_API_ID_TOKEN: await token({ jti: '2' }) }, [], ['sh', '-c', 'exit 7']);
    assert.equal(failing.code, 7);
    assert.deepEqual(await keys(), ['deploys']);
  });

  it('finds the token where each platform has it, and asks for one for the service', async () => {
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url, request.headers.authorization);
      void token({ jti: 'github' }).then((value) => response.end(JSON.stringify({ count: 1, value })));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token?api-version=2.0`;
    const github = { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'secret of the job' };
    assert.equal((await exec(github, ['--audience', AUDIENCE])).stdout, '200 undefined\n');
    assert.deepEqual(asked, [
      `/token?api-version=2.0&audience=${encodeURIComponent(AUDIENCE)}`,
      'bearer secret of the job',
    ]);
    await new Promise((done) => server.close(done));
    const gone = await exec(github);
    assert.equal(gone.code, 1);
    assert.match(gone.stderr, /gave no token for this job/);
    assert.ok(!gone.stderr.includes('secret of the job'));

    const agent = join(folder, 'buildkite-agent');
    writeFileSync(join(folder, 'token'), `${await token({ jti: 'buildkite' })}\n`);
    writeFileSync(agent, `#!/bin/sh\necho "$@" > ${folder}/args\ncat ${folder}/token\n`);
    chmodSync(agent, 0o755);
    const buildkite = { BUILDKITE: 'true', PATH: `${folder}:${process.env['PATH']}` };
    const { stdout } = await exec(buildkite, [], ['sh', '-c', 'cat "$0"', join(folder, 'args')]);
    assert.equal(stdout, `oidc request-token --audience ${test.url} --claim organization_id --claim pipeline_id\n`);

    writeFileSync(join(folder, 'token'), `${await token({ jti: 'file' })}\n`);
    assert.equal((await exec({}, ['--token-file', join(folder, 'token')])).stdout, '200 undefined\n');
  });

  it('gets no more than it asks for', async () => {
    const flags = ['--roles', 'guest', '--permissions', 'INFO:READ_ANY', '--ttl', '2m', '--name', 'Deploy 7'];
    const { code, stderr } = await exec({ SVC_API_ID_TOKEN: await token() }, flags, ['true']);
    assert.equal(code, 0, stderr);
    const [entry] = await test.keys.audit.read({ action: 'CREATE', apiKey: 'Deploy 7' }, OPERATOR);
    const { roles, permissions, expiresAt } = entry!.after as Record<string, unknown>;
    assert.deepEqual([roles, permissions], [['GUEST'], ['INFO:READ_ANY']]);
    assert.equal(Date.parse(expiresAt as string) - entry!.at, 120_000);
    const wide = await exec({ SVC_API_ID_TOKEN: await token({ jti: 'x' }) }, ['--roles', 'ADMIN'], ['true']);
    assert.deepEqual([wide.code, /lacks/.test(wide.stderr)], [2, true], wide.stderr);
  });

  it('is tried again when the server says when, a few times at most', async () => {
    const asked: string[] = [];
    let failures = 2;
    const proxy = createServer((request, response) => {
      asked.push(request.url!);
      const isExchange = request.url === '/oauth/token';
      if (isExchange && failures > 0) {
        failures -= 1;
        const status = failures % 2 === 0 ? 503 : 429;
        const error = { error: 'temporarily_unavailable', error_description: 'The issuer does not answer.' };
        response.writeHead(status, { 'retry-after': failures > 5 ? '3600' : '0' }).end(JSON.stringify(error));
        return;
      }
      request.pipe(
        forward(test.url + request.url, { method: request.method, headers: request.headers }, (answer) => {
          response.writeHead(answer.statusCode!, answer.headers);
          answer.pipe(response);
        }),
      );
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const run = async () => {
      asked.length = 0;
      const args = ['apikey', 'exec', '--federated', '--server', url, '--', 'node', '-e', 'console.log("ran")'];
      return runCli(args, { env: cleanEnv({ no_proxy: '*', SVC_API_ID_TOKEN: await token() }) });
    };
    const done = await run();
    assert.deepEqual([done.code, done.stdout], [0, 'ran\n'], done.stderr);
    assert.match(done.stderr, /The issuer does not answer.*Trying again/);
    assert.deepEqual(asked, ['/oauth/token', '/oauth/token', '/oauth/token', '/oauth/revoke']);
    failures = 5;
    const given = await run();
    assert.deepEqual([given.code, given.stdout, asked.length], [1, '', 5], given.stderr);
    failures = 7;
    const later = await run();
    assert.deepEqual([later.code, asked.length], [1, 1], later.stderr);
    await new Promise((closed) => proxy.close(closed));
  });

  it('does not run where there is no token, or it is not accepted', async () => {
    const command = ['sh', '-c', 'echo ran'];
    const given = await token({ ref: 'other' });
    for (const [env, flags, code, text] of [
      [{}, [], 2, /No token was found/],
      [{ SVC_API_ID_TOKEN: given }, [], 1, /meets no rule/],
      [{ SVC_API_ID_TOKEN: 'nonsense' }, [], 1, /not a signed JWT/],
      [{}, ['--token-file', join(folder, 'none')], 2, /could not be read/],
      [{ SVC_API_ID_TOKEN: given }, ['--database', 'x.sqlite'], 2, /Leave --database out/],
      [{ SVC_API_ID_TOKEN: given }, ['--ttl', 'soon'], 2, /--expires-in is "soon"/],
      [{ ACTIONS_ID_TOKEN_REQUEST_URL: 'http://192.0.2.1/', ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'x' }, [], 2, /https:/],
    ] as const) {
      const done = await exec(env, [...flags], command);
      assert.deepEqual([done.code, done.stdout], [code, ''], done.stderr);
      assert.match(done.stderr, text);
      assert.ok(!done.stderr.includes(given));
    }
    const without = await runCli(['apikey', 'exec', '--token-file', 'x', '--', 'true'], { env: cleanEnv({}) });
    assert.match(without.stderr, /--token-file needs --federated/);
  });

  it('is counted by doctor, which names rules that were not used for 90 days', async () => {
    const doctor = async () => {
      const args = ['doctor', '--json', '--database', test.database, '--config', configFile(text)];
      const { stdout } = await runCli(args, { env: cleanEnv({}) });
      const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; message: string }[] };
      const { status, message } = checks.find(({ check }) => check === 'FEDERATION')!;
      return [status, message];
    };
    assert.deepEqual(await doctor(), ['ok', '2 rules exchange tokens; never used: 2.']);
    const use = async () => {
      const assertion = await token({ exp: Math.floor(test.time.now / 1000) + 300 });
      const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion };
      assert.equal((await postJson(`${test.url}/oauth/token`, form)).status, 200);
      await test.keys.finishActivity();
    };
    test.time.now -= 91 * 86_400_000;
    await use();
    assert.deepEqual(await doctor(), ['warning', '1 rule was not used for 90 days: "deploys".']);
    test.time.now += 2 * 86_400_000;
    await use();
    assert.deepEqual(await doctor(), ['ok', '2 rules exchange tokens; never used: 1.']);
  });

  it('is refused, and doctor names the issuer, while its keys cannot be read', async () => {
    issuer.answer = (response) => response.writeHead(503).end();
    const args = ['doctor', '--json', '--database', test.database, '--config', configFile(text)];
    const { code, stdout } = await runCli(args, { env: cleanEnv({ no_proxy: '*' }) });
    const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; message: string }[] };
    const named = checks.filter(({ check, status }) => check === 'FEDERATION' && status === 'warning');
    assert.deepEqual(
      [code, named.map(({ message }) => message)],
      [0, ['', '/'].map((end) => `The keys of the issuer ${issuer.url}${end} cannot be read: status 503.`)],
    );
    const path = join(folder, 'token');
    writeFileSync(path, await token());
    const explain = ['explain', path, '--config', configFile(text)];
    const explained = await runCli(explain, { env: cleanEnv({ no_proxy: '*' }) });
    assert.match(explained.stdout, /deploys: .*does not answer.*The reason: status 503/);
    const { body, headers } = await postJson(`${test.url}/oauth/token`, {
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: await token(),
    });
    assert.deepEqual([body['error'], headers.get('retry-after')], ['temporarily_unavailable', '10']);
  });

  it('can be tried first: which rules a token meets, and what it lacks for others', async () => {
    const explain = async (given: string, ...flags: string[]) => {
      const path = join(folder, 'token');
      writeFileSync(path, given);
      const args = ['explain', path, '--config', configFile(text), ...flags];
      const { code, stdout, stderr } = await runCli(args, { env: cleanEnv({ no_proxy: '*' }) });
      assert.ok(!`${stdout}${stderr}`.includes(given), 'the token is not printed');
      return { code, stdout, stderr };
    };
    const met = await explain(await token());
    assert.deepEqual(
      [met.code, met.stdout],
      [0, 'The token meets the rule "deploys"\ndeploys: met\nothers: The issuer of the token is not trusted here\n'],
    );
    const lacking = await explain(await token({ ref: 'dev', aud: 'x' }), '--json');
    assert.equal(lacking.code, 1);
    const { expiresAt, ...json } = JSON.parse(lacking.stdout) as Record<string, unknown>;
    assert.match(expiresAt as string, /^\d{4}-/);
    assert.deepEqual(json, {
      rule: null,
      issuer: issuer.url,
      subject: 'deploy',
      rules: [
        {
          name: 'deploys',
          met: false,
          refused: `The token is for another service: its "aud" must be ${AUDIENCE}.`,
          lacks: ['ref is "dev", not "main" or "release"'],
        },
        { name: 'others', met: false, refused: 'The issuer of the token is not trusted here.', lacks: [] },
      ],
    });
    const [file, asked] = [join(folder, 'jwks.json'), issuer.requests.length];
    writeFileSync(file, JSON.stringify({ keys: issuer.keys }), { mode: 0o644 });
    text = text.replace(`"${issuer.url}" }`, `"${issuer.url}", jwks: { file: "${file}" } }`);
    const offline = await explain(await token());
    assert.deepEqual([offline.code, issuer.requests.length], [0, asked], offline.stderr);
    const odd = await explain('nonsense');
    assert.deepEqual([odd.code, /not a signed JWT/.test(odd.stderr)], [2, true], odd.stderr);
  });
});
