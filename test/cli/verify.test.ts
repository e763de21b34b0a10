import assert from 'node:assert/strict';
import { describeOnEach } from '../support/dialects.ts';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openKeys } from '../../src/service/open-keys.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { damageKey } from '../support/damage.ts';
import { openTestKeys } from '../support/keys.ts';
import { runCliHere } from '../support/cli-here.ts';
import { errorText } from '../support/errors.ts';
import { type Finished, runCliWithInput } from '../support/process.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../support/pty.ts';
import { migratedStore, tempFolder, tempStore } from '../support/temp.ts';

/** Runs `apikey verify` with a text on stdin. */
function verify(database: string, input: string, ...args: string[]): Promise<Finished> {
  return runCliHere(['apikey', 'verify', ...args], { env: { SVC_API_DATABASE: database }, input });
}

async function verifyJson(database: string, input: string, ...args: string[]) {
  const { stdout, stderr, code } = await verify(database, input, '-', '--json', ...args);
  assert.equal(stderr, '');
  assert.ok(input.trim() === '' || !stdout.includes(input.trim()));
  const { apiKey, ...verdict } = JSON.parse(stdout) as { apiKey: { id: string; name: string } | null };
  return { verdict, apiKey, code };
}

describeOnEach('apikey verify', () => {
  it('says which key a secret belongs to, ignoring white space around it', async () => {
    const cli = testCli();
    const { key: secret } = await cli.given('CI deploy', { expiresIn: '30d' });
    for (const input of [secret, `${secret}\n`, ` \t${secret}\r\n`]) {
      const { stdout, stderr, code } = await verify(cli.database, input, '-');
      assert.match(stdout, /^valid: API key "CI deploy" \(svc_\w{12}_…\), ACTIVE, expires \d{4}-\S+Z\n$/);
      assert.ok(stdout.includes(secret.slice(0, 17)));
      assert.deepEqual([stderr, code], ['', 0]);
    }
    const endless = await cli.given('Endless');
    assert.match(
      (await verify(cli.database, endless.key, '-')).stdout,
      /^valid: API key "Endless" \(svc_\w{12}_…\), ACTIVE, does not expire\n$/,
    );
  });

  it('says that the row of a key is damaged', async () => {
    const cli = testCli();
    const { key: secret } = await cli.given('CI deploy');
    await damageKey(cli.database, 'CI deploy', 'expires_at = 1');
    const { stdout, code } = await verify(cli.database, secret, '-');
    assert.match(stdout, /^not valid: .*, DISABLED, because its row in the key store is damaged\n$/);
    assert.equal(code, 3);
  });

  it('answers in JSON with the key as show has it, and counts no use', async () => {
    const cli = testCli();
    const { key: secret, id } = await cli.given('CI deploy');
    const { verdict, apiKey, code } = await verifyJson(cli.database, secret);
    assert.deepEqual([verdict, code], [{ valid: true, reason: null, permitted: null }, 0]);
    const { effectivePermissions: _, ...shown } = JSON.parse(
      (await cli.run(['apikey', 'show', 'CI deploy', '--json'])).stdout,
    ) as Record<string, unknown>;
    assert.deepEqual(apiKey, shown);
    assert.deepEqual([shown['id'], shown['uses'], shown['lastUsedAt']], [id, 0, null]);
  });

  it('ends with 3 for a secret that is not valid, and says why', async () => {
    const database = await migratedStore();
    const { keys, store, time } = await openTestKeys({ database });
    time.now = Date.UTC(2026, 0, 1);
    const off = await keys.create({ name: 'Off', roles: ['GUEST'] }, OPERATOR);
    await keys.setEnabled(off.apiKey.id, false, OPERATOR);
    const over = await keys.create({ name: 'Over', roles: ['GUEST'], expiresIn: '1d' }, OPERATOR);
    const replaced = await keys.create({ name: 'Replaced', roles: ['GUEST'] }, OPERATOR);
    await keys.rotate(replaced.apiKey.id, { grace: '0s' }, OPERATOR);
    const gone = await keys.create({ name: 'Gone', roles: ['GUEST'] }, OPERATOR);
    await keys.delete([gone.apiKey.id], OPERATOR);
    await store.close();
    const prefix = String.raw`\(svc_\w{12}_…\)`;
    const rows = [
      ['malformed', over.key.slice(0, -1), null, 'malformed, with a wrong format or checksum'],
      ['malformed', 'hello', null, 'malformed, with a wrong format or checksum'],
      ['unknown', gone.key, null, `unknown, no API key has this secret ${prefix}`],
      ['disabled', off.key, 'Off', `API key "Off" ${prefix}, DISABLED since 2026-01-01T00:00:00\\.000Z`],
      ['expired', over.key, 'Over', `API key "Over" ${prefix}, EXPIRED since 2026-01-02T00:00:00\\.000Z`],
      ['rotated', replaced.key, 'Replaced', `API key "Replaced" ${prefix}, ROTATED, replaced by a newer secret`],
    ] as const;
    for (const [reason, secret, name, text] of rows) {
      const plain = await verify(database, secret, '-');
      assert.match(plain.stdout, new RegExp(`^not valid: ${text}\n$`));
      assert.deepEqual([plain.stderr, plain.code, plain.stdout.includes(secret)], ['', 3, false], reason);
      const { verdict, apiKey, code } = await verifyJson(database, secret, '--permission', 'ME:READ_OWN');
      assert.deepEqual([verdict, apiKey?.name ?? null, code], [{ valid: false, reason, permitted: false }, name, 3]);
    }
  });

  it('distinguishes the previous secret from the newest, while both are accepted', async () => {
    const cli = testCli();
    const { key: secret } = await cli.given('CI deploy');
    await cli.run(['apikey', 'rotate', 'CI deploy', '--grace', '1h']);
    const { stdout, code } = await verify(cli.database, secret, '-');
    assert.match(stdout, /, ACTIVE, does not expire; this is its previous secret, accepted until \d{4}-\S+Z\n$/);
    assert.ok(stdout.includes(secret.slice(0, 17)));
    assert.equal(code, 0);
  });

  it('ends with 4 for a valid secret that lacks the permission', async () => {
    const cli = testCli();
    const { key: secret } = await cli.given('CI deploy');
    const has = await verify(cli.database, secret, '-', '--permission', 'docker:read_any');
    assert.match(has.stdout, /^valid: .*, has DOCKER:READ_ANY\n$/);
    assert.equal(has.code, 0);
    const lacks = await verify(cli.database, secret, '-', '--permission', 'DOCKER:UPDATE_ANY');
    assert.match(lacks.stdout, /^valid: .*, lacks DOCKER:UPDATE_ANY\n$/);
    assert.deepEqual([lacks.stderr, lacks.code], ['', 4]);
    const rows = [
      ['DOCKER:READ_OWN', { valid: true, reason: null, permitted: true }, 0],
      ['API_KEY:READ_OWN', { valid: true, reason: 'forbidden', permitted: false }, 4],
    ] as const;
    for (const [permission, expected, exit] of rows) {
      const { verdict, apiKey, code } = await verifyJson(cli.database, secret, '--permission', permission);
      assert.deepEqual([verdict, apiKey?.name, code], [expected, 'CI deploy', exit]);
    }
    const wrong = await verify(cli.database, secret, '-', '--permission', 'DOCKER', '--json');
    assert.deepEqual([(JSON.parse(wrong.stdout) as { code: string }).code, wrong.code], ['PERMISSION_INVALID', 2]);
  });

  it('takes no secret as an argument, and repeats none', async () => {
    const cli = testCli();
    const secret = 'hunter2-from-elsewhere';
    const rows = [
      [secret],
      ['-', secret],
      [secret, '-'],
      [],
      [`--${secret}`],
      [`-${secret}`, '-'],
      ['-', '--', secret],
      ['--', `--${secret}`],
    ];
    for (const args of rows) {
      const { stdout, stderr, code } = await verify(cli.database, 'x', ...args);
      assert.match(stderr, /^Error: (Pass only -, for stdin|An unknown flag is given)/, args.join(' '));
      assert.deepEqual([stdout, code, stderr.includes('hunter2')], ['', 2, false], args.join(' '));
    }
    assert.ok(!existsSync(cli.database));
  });

  it('refuses a stdin that is empty or holds too much, without a store', async () => {
    const cli = testCli();
    const rows = [
      ['', 'The secret is missing: stdin is empty. Pipe the secret to it.'],
      [' \n', 'The secret is missing: stdin is empty. Pipe the secret to it.'],
      ['x'.repeat(1_000_000), "Stdin has more than 65536 bytes, which can't be a secret. Pass only the secret."],
    ] as const;
    for (const [input, error] of rows) {
      const { stdout, stderr, code } = await verify(cli.database, input, '-');
      assert.deepEqual([stdout, stderr, code], ['', errorText('USAGE', error, 'apikey verify'), 2]);
    }
    assert.ok(!existsSync(cli.database));
  });
});

describe('apikey verify at a pipe', () => {
  const run = (input: string, database: string) =>
    runCliWithInput(input, ['apikey', 'verify', '-', '--database', database]);

  it('reads the secret from it', async () => {
    const cli = testCli();
    const { key: secret } = await cli.given('CI deploy');
    const { stdout, stderr, code } = await run(`${secret}\n`, cli.database);
    assert.match(stdout, /^valid: API key "CI deploy" /);
    assert.deepEqual([stderr, code], ['', 0]);
  });

  it('does not read on where it holds too much', async () => {
    const { stderr, code } = await run('x'.repeat(1_000_000), tempStore());
    assert.deepEqual(
      [stderr, code],
      [
        errorText(
          'USAGE',
          "Stdin has more than 65536 bytes, which can't be a secret. Pass only the secret.",
          'apikey verify',
        ),
        2,
      ],
    );
  });
});

describe('apikey verify on a terminal', () => {
  let cli: TestCli;
  let session: TerminalSession | undefined;
  beforeEach(() => {
    cli = testCli();
  });
  afterEach(() => session?.close());
  const start = (args: readonly string[], stdoutTo?: string) =>
    (session = cliOnTerminal(['apikey', 'verify', ...args], { SVC_API_DATABASE: cli.database }, stdoutTo));

  it('asks for the secret on stderr, and never shows it', async () => {
    const { key: secret } = await cli.given('CI deploy');
    const output = join(tempFolder(), 'stdout');
    const terminal = start(['-'], output);
    await terminal.answer('? Secret', secret + KEYS.enter);
    assert.equal(await terminal.end(), 0);
    assert.match(readFileSync(output, 'utf8'), /^valid: API key "CI deploy" \(.*\), ACTIVE, does not expire\n$/);
    assert.ok(!terminal.raw.includes(secret.slice(17, 30)));
  });

  it('checks the permission before it asks, and can be left by Ctrl-C', async () => {
    const wrong = start(['-', '--permission', 'DOCKER']);
    assert.equal(await wrong.end(), 2);
    assert.ok(!wrong.screen.includes('? Secret'));
    const left = start(['-']);
    await left.answer('? Secret', KEYS.ctrlC);
    assert.equal(await left.end(), 130);
    assert.ok(!existsSync(cli.database));
  });

  it('asks nothing with --json, where a typed secret would be shown', async () => {
    const terminal = start(['-', '--json']);
    assert.equal(await terminal.end(), 2);
    assert.equal((JSON.parse(terminal.screen) as { code: string }).code, 'USAGE');
  });

  it('leaves the store as it was', async () => {
    const { key: secret, id } = await cli.given('CI deploy');
    const terminal = start(['-']);
    await terminal.answer('? Secret', secret + KEYS.enter);
    await terminal.end();
    const keys = await openKeys({ database: cli.database });
    const [usage, entries] = [await keys.useOf([id]), await keys.audit.read({}, OPERATOR)];
    await keys.close();
    assert.deepEqual([usage.size, entries.length], [0, 1]);
  });
});
