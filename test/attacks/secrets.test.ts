import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SecretFiles } from '../../src/features/apply/cli/secret-files.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createSecret } from '../../src/keys/secret/secret.ts';
import { runCliHere } from '../support/cli-here.ts';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { jsonLines, openTestKeys, storedKey } from '../support/keys.ts';
import { runCli } from '../support/process.ts';
import { tempFolder, tempStore } from '../support/temp.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';

const { text: secret, publicId } = createSecret(randomBytes);

describe('a secret that is typed in the wrong place', () => {
  const ESCAPE = '\u001b]0;owned\u0007';
  const typed = `${ESCAPE}${secret}`;
  const places = [
    [typed],
    ['help', typed],
    ['help', 'apikey', typed],
    ['apikey', typed],
    ['apikey', 'list', typed],
    ['apikey', `list:${typed}`],
    ['apikey', '--help', typed],
    ['apikey', 'show', typed],
    ['apikey', 'list', `--${typed}`],
    ['apikey', 'list', `--${typed}=${typed}`],
    ['apikey', 'list', '--limit', typed],
    ['apikey', 'list', '--database', typed],
    ['apikey', 'log', '--action', typed],
    ['apikey', 'scan', typed],
    ['apikey', 'verify', typed],
    ['apikey', 'exec', typed],
    ['apikey', 'create', '--name', typed, '--roles', typed],
    ['apikey', 'create', '--name', 'New', '--roles', 'GUEST', '--description', typed],
    ['apikey', 'create', '--name', 'New', '--roles', 'GUEST', '--description', secret],
    ['autocomplete', typed],
    ['serve', typed],
    ['serve', '--port', typed],
    ['serve', '--host', typed],
    ['serve', '--database', join('/dev/null', typed)],
    [`--${typed}`],
  ];
  for (const args of places) {
    const shown = args.join(' ').replaceAll(typed, 'SECRET').replaceAll(secret, 'SECRET');
    it(`is not repeated, nor is an escape sequence: ${shown}`, async () => {
      // Verbs handle their own errors. Other failures occur before a command runs, or in a server.
      const run = args[0] === 'apikey' && /^[a-z]+$/.test(args[1]!) ? runCliHere : runCli;
      const { stdout, stderr, code } = await run(args, { cwd: tempFolder(), env: { SVC_API_DATABASE: tempStore() } });
      const output = stdout + stderr;
      assert.notEqual(code, 0);
      assert.ok(!output.includes(secret.slice(17, 40)), output);
      assert.ok(!output.includes('\u001b') && !output.includes('\u0007'), JSON.stringify(output));
    });
  }

  it('is not in the log of a failure, nor is a character that a terminal obeys', async () => {
    const control = '\u009b31m\u202e';
    const { stderr } = await runCli(['apikey', 'list', '--database', join(tempFolder(), `${control}${secret}`)], {
      env: { LOG_LEVEL: 'debug' },
    });
    const line = stderr.split('\n').find((text) => text.includes('"the command failed"')) ?? '';
    assert.ok(line.includes('\\u009b31m\\u202esvc_'), line);
    assert.ok(!stderr.includes(secret.slice(17, 40)) && !/[\u009b\u202e]/.test(stderr), stderr);
  });

  it('is not repeated by export as the name of its target, nor is an escape sequence', async () => {
    const cli = testCli();
    await cli.given('CI');
    const { stdout, code } = await cli.run(['apikey', 'export', '--to', join(tempFolder(), `${typed}.sqlite`)]);
    assert.equal(code, 0);
    assert.ok(stdout.includes(`<U+001B>]0;owned<U+0007>svc_${publicId}_…`), stdout);
    assert.ok(!stdout.includes(secret.slice(17, 40)) && !stdout.includes('\u001b'));
  });
});

describeOnEach('a description that holds a secret', () => {
  const description = `The key is ${secret}`;
  const refused = { code: 'DESCRIPTION_INVALID', message: /^The description contains what looks like the secret/ };

  it('is refused when a key is created, updated or overwritten', async () => {
    const { keys, store } = await openTestKeys();
    const { apiKey: key } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const input = { name: 'CI', roles: ['GUEST'], description };
    await assert.rejects(keys.create({ ...input, name: 'New' }, OPERATOR), refused);
    await assert.rejects(keys.create({ ...input, overwrite: true }, OPERATOR), refused);
    await assert.rejects(keys.preview({ ...input, name: 'New' }, OPERATOR), refused);
    await assert.rejects(keys.update(key.id, { description }, OPERATOR), refused);
    await store.close();
  });

  it('is refused when keys are imported', async () => {
    const { keys, store } = await openTestKeys();
    const { text } = createSecret(randomBytes);
    const report = await importKeys(keys, jsonLines({ name: 'CI', secret: text, roles: ['GUEST'], description }));
    assert.deepEqual([report.imported, report.lines[0]?.errors[0]?.code], [0, refused.code]);
    assert.match(report.lines[0]!.errors[0]!.message, refused.message);
    await store.close();
  });

  it('is refused when keys are declared', async () => {
    const cli = testCli();
    const file = join(tempFolder(), 'keys.yaml');
    writeFileSync(file, `keys: [{ name: CI, roles: [GUEST], description: "${description}" }]\n`);
    const { stdout, code } = await cli.run(['apikey', 'apply', '-f', file, '--json']);
    const failure = JSON.parse(stdout) as { error: string; code: string };
    assert.deepEqual([failure.code, code], ['DECLARATION_INVALID', 2]);
    assert.match(failure.error, /The description contains what looks like the secret/);
  });
});

describe('secret files that cannot all be published', () => {
  const key = (name: string) => ({ ...storedKey(name), name });

  it('leave each older file as it was, be it a file or a link that leads nowhere', () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'A'), 'older');
    symlinkSync('nowhere', join(folder, 'B'));
    const files = new SecretFiles(folder, '/keys.sqlite');
    files.write(['A', 'B', 'C', 'D'].map((name) => ({ key: `${name} secret`, apiKey: key(name) })));
    mkdirSync(join(folder, 'D'));
    assert.throws(() => files.publish(), { code: 'OUTPUT_FAILED', message: /Nothing was changed/ });
    assert.deepEqual(readdirSync(folder).toSorted(), ['A', 'B', 'D']);
    assert.equal(readFileSync(join(folder, 'A'), 'utf8'), 'older');
    assert.ok(lstatSync(join(folder, 'B')).isSymbolicLink());
  });
});

describe('an unknown command', () => {
  it('is named where it holds no secret', async () => {
    const { stderr, code } = await runCli(['creat', '--database', tempStore()]);
    assert.match(stderr, /Unknown command: "creat"/);
    assert.equal(code, 2);
  });
});
