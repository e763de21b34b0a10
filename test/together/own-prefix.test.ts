import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfig } from '../../src/config/load-config.ts';
import { createApp, listen, openKeys } from '../../src/index.ts';
import { testCli } from '../support/cli.ts';
import { query } from '../support/server.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const ACME = /^acme_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/;

describe('a prefix of an installation', () => {
  it('begins new secrets on the command line, while earlier keys go on working', async () => {
    const folder = tempFolder();
    const config = join(folder, 'svc-api.yaml');
    writeFileSync(config, 'prefix: acme\n', { mode: 0o600 });
    const none = join(folder, 'none.yaml');
    writeFileSync(none, '{}\n', { mode: 0o600 });
    const cli = testCli();
    const run = async (args: string[], file = config, input = '') => {
      const { code, stdout, stderr } = await cli.run(args, { env: { SVC_API_CONFIG: file }, input });
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const json = async (...args: string[]) => JSON.parse(await run([...args, '--json'])) as Record<string, unknown>;

    const old = (await run(['apikey', 'create', 'Old', '--roles', 'GUEST'], none)).trim();
    const { key } = (await json('apikey', 'create', 'New', '--roles', 'GUEST')) as { key: string };
    assert.match(old, /^svc_/);
    assert.match(key, ACME);
    const prefixes = ((await json('apikey', 'list'))['keys'] as { prefix: string }[]).map(({ prefix }) => prefix);
    assert.deepEqual(prefixes, [`${old.slice(0, 17)}…`, `${key.slice(0, 18)}…`]);
    for (const secret of [old, key]) assert.match(await run(['apikey', 'verify', '-'], config, secret), /^valid:/);

    const found = join(folder, 'notes.txt');
    writeFileSync(found, `a=${key}\nb=${old}\n`);
    const scanned = await cli.run(['apikey', 'scan', found, '--json'], { env: { SVC_API_CONFIG: config } });
    const { found: all } = JSON.parse(scanned.stdout) as { found: { name: string; line: number }[] };
    assert.deepEqual(
      all.map(({ name, line }) => [name, line]),
      [
        ['New', 1],
        ['Old', 2],
      ],
    );
    assert.match(await run(['apikey', 'scan', '--rules', 'gitleaks']), /\(\?:svc\|acme\)_.*\n.*"svc_", "acme_"/);
    assert.match(await run(['apikey', 'scan', '--rules', 'trufflehog']), /\[svc_, acme_\]/);

    const refused = await cli.run(['apikey', 'create', 'Leak', '--roles', 'GUEST', '--description', `see ${key}`], {
      env: { SVC_API_CONFIG: config },
    });
    assert.equal(refused.code, 2);
    assert.ok(!refused.stderr.includes(key.slice(18)));
    assert.ok(!(await cli.run(['apikey', key])).stderr.includes(key.slice(18)));

    const rotated = (await json('apikey', 'rotate', 'Old')) as { key: string };
    assert.match(rotated.key, ACME);

    const exported = await run(['apikey', 'export', '--with-digests']);
    const lines = join(folder, 'keys.jsonl');
    writeFileSync(lines, exported);
    const other = { SVC_API_DATABASE: tempStore(), SVC_API_CONFIG: none };
    const imported = await cli.run(['apikey', 'import', lines], { env: other });
    assert.equal(imported.code, 0, imported.stderr);
    const shown = await cli.run(['apikey', 'verify', '-', '--json'], { env: other, input: key });
    assert.equal(shown.code, 0, shown.stderr + shown.stdout);
    assert.ok(shown.stdout.includes(key.slice(0, 18)));
  });

  it('is that of keys created by a server, and of its logs and answers', async () => {
    const keys = await openKeys({ database: tempStore(), prefix: 'acme' });
    const server = await listen({ app: await createApp({ keys }), host: '127.0.0.1', port: 0 });
    try {
      const { key } = await keys.create({ name: 'Admin', roles: ['ADMIN'] }, { actor: 'operator' });
      assert.match(key, ACME);
      const asked = await query(server.url, key, '{ me { prefix } }');
      assert.deepEqual(asked.body, { data: { me: { prefix: `${key.slice(0, 18)}…` } } });
      const text = JSON.stringify((await query(server.url, key, `{ me { ${key} } }`)).body);
      assert.ok(text.includes(key.slice(0, 18)) && !text.includes(key.slice(18, 60)));
      const mistyped = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
      assert.equal((await query(server.url, mistyped, '{ me { prefix } }')).status, 401);

      const env = { SVC_API_SERVER: server.url, SVC_API_KEY: key, SVC_API_DATABASE: undefined };
      const made = await testCli().run(['apikey', 'create', 'Far', '--roles', 'GUEST'], { env });
      assert.match(made.stdout.trim(), ACME);
    } finally {
      await server.stop(0);
      await keys.close();
    }
  });

  it('is refused where it is not valid', async () => {
    for (const prefix of ['a', 'a_b', '"aaaaaaaaaaaaa"'])
      await assert.rejects(parseConfig({ path: 'svc-api.yaml', text: `prefix: ${prefix}\n` }), /not a prefix/);
    await assert.rejects(openKeys({ database: tempStore(), prefix: 'a b' }), /not a prefix/);
    assert.ok(readFileSync('examples/scanners/gitleaks.toml', 'utf8').includes("'''svc_["));
  });
});
