import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestCli, testCli } from '../support/cli.ts';
import { startServe } from '../support/serve.ts';
import { pairOf, writePair } from '../support/certificates.ts';
import { BIN, cleanEnv, finished, runCli, startCli } from '../support/process.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../support/pty.ts';
import { CALLER, remoteStore, stopRemoteStores } from '../support/remote.ts';
import { isAccepted, keyNamed, namesIn } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';

describe('processes that work on a server', () => {
  let cli: TestCli;
  let env: NodeJS.ProcessEnv;
  let session: TerminalSession | undefined;
  beforeEach(async () => {
    cli = testCli();
    const { url, key } = await remoteStore(cli.database);
    env = { SVC_API_SERVER: url, SVC_API_KEY: key };
  });
  afterEach(async () => {
    session?.close();
    await stopRemoteStores();
  });

  it('take a new secret back that cannot be written out, and say what stays', async () => {
    const lost = async (...args: string[]) => {
      const command = ['bash', '-c', '"$@" > /dev/full', 'bash', process.execPath, BIN, 'apikey', ...args];
      const { stderr, code } = await finished(spawn(command[0]!, command.slice(1), { env: cleanEnv(env) }));
      assert.equal(code, 1);
      assert.match(stderr, /\nCode: OUTPUT_FAILED\n/);
      return stderr.split('\n')[0]!;
    };
    const { key: old } = await cli.given('Kept');
    assert.match(
      await lost('create', 'Lost', '--roles', 'GUEST'),
      /The key was removed again, because its secret was not delivered/,
    );
    assert.match(await lost('rotate', 'Kept', '--grace', '0s'), /so the rotation was undone/);
    assert.ok(await isAccepted(cli.database, old));
    assert.match(await lost('rotate', CALLER), /so the rotation was undone/);
    assert.deepEqual(await namesIn(cli.database), ['Kept']);
    assert.match(
      await lost('create', 'Kept', '--roles', 'GUEST', '--overwrite'),
      /because its secret was not delivered\. The key that it replaced stays deleted\.$/,
    );
    const file = join(tempFolder(), 'keys.yaml');
    writeFileSync(file, 'keys: [{name: New, roles: [GUEST]}]');
    assert.match(await lost('apply', '-f', file, '--json'), /New secrets were revoked, .*Other changes stay\.$/);
    assert.deepEqual(await namesIn(cli.database), []);
  });

  it('run a command with a temporary key, and not with the key that made it', async () => {
    const script = 'env | grep -c "=svc_"; env | grep "^SVC_API_KEY="; echo "$API_KEY"; exit 3';
    const child = startCli(['apikey', 'exec', '--roles', 'GUEST', '--', 'sh', '-c', script], { env });
    const { stdout, stderr, code } = await finished(child);
    const [count, secret, ...more] = stdout.trim().split('\n');
    assert.deepEqual([count, more, stderr, code], ['1', [], '', 3]);
    assert.match(secret!, /^svc_\w{62}$/);
    assert.equal(await isAccepted(cli.database, secret!), false);
    assert.deepEqual(await namesIn(cli.database), []);
  });

  it('trust the certificates of NODE_EXTRA_CA_CERTS, and never one that is not', async () => {
    const { cert, key } = writePair(pairOf('first'));
    const server = await startServe(cli.database, ['--port', '0', '--tls-cert', cert, '--tls-key', key]);
    const SVC_API_SERVER = server.url.replace('127.0.0.1', 'localhost');
    const list = (more: NodeJS.ProcessEnv, ...flags: string[]) =>
      runCli(['apikey', 'list', ...flags], { env: { ...env, SVC_API_SERVER, ...more } });
    const trusted = await list({ NODE_EXTRA_CA_CERTS: cert, LOG_LEVEL: 'trace' });
    assert.equal(trusted.code, 0, trusted.stderr);
    for (const flags of [[], ['--insecure']]) {
      const { stderr, code } = await list({ LOG_LEVEL: 'trace' }, ...flags);
      assert.match(stderr, /a certificate that is not trusted here/);
      assert.equal(code, 1);
      assert.ok(!stderr.includes(env['SVC_API_KEY']!.slice(17)));
    }
    await server.stop();
  });

  it('follow the log', async () => {
    const child = startCli(['apikey', 'log', '--follow', '--json', '--action', 'create'], { env });
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const next = async () =>
      (JSON.parse((await lines.next()).value ?? '{}') as { apiKey?: { name: string } }).apiKey?.name;
    try {
      assert.equal(await next(), CALLER);
      await cli.given('Later');
      assert.equal(await next(), 'Later');
    } finally {
      child.kill();
      await once(child, 'exit');
    }
  });

  it('ask for missing input of a new key, and offer to replace another', async () => {
    const { id } = await cli.given('Taken');
    const terminal = (session = cliOnTerminal(['apikey', 'create'], env));
    await terminal.answer('? Name', `Taken${KEYS.enter}`);
    await terminal.answer('? An API key named "Taken" already exists. Replace it', `y${KEYS.enter}`);
    await terminal.answer('? Description (optional)', KEYS.enter);
    await terminal.answer('? Roles', `${KEYS.down}${KEYS.space}`);
    await terminal.answer('❯◉ VIEWER', KEYS.enter);
    await terminal.answer('? Permissions: choose a resource', KEYS.enter);
    await terminal.answer('? Expires', KEYS.enter);
    assert.equal(await terminal.end(), 0, terminal.screen);
    assert.match(terminal.screen, /Replaced API key "Taken" \(svc_\w{12}_…\) with roles VIEWER\. It expires /);
    assert.notEqual((await keyNamed(cli.database, 'Taken'))?.id, id);
  });

  it('let keys be chosen', async () => {
    await cli.given('Alpha');
    await cli.given('Beta');
    const terminal = (session = cliOnTerminal(['apikey', 'delete'], env));
    await terminal.answer('↑↓ navigate', 'Bet');
    await terminal.answer('❯◯ Beta', KEYS.tab);
    await terminal.answer('❯◉ Beta', KEYS.enter);
    await terminal.answer('? Delete "Beta"', `y${KEYS.enter}`);
    assert.equal(await terminal.end(), 0, terminal.screen);
    assert.deepEqual(await namesIn(cli.database), ['Alpha']);
  });
});
