import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECRET, testCli } from '../../support/cli.ts';
import { describeOn } from '../../support/dialects.ts';
import { askPostgres, postgresStore } from '../../support/postgres.ts';
import { tempFolder } from '../../support/temp.ts';

describeOn('postgres', 'the password of a role', () => {
  /** The URL of a new store of the role with a password, without that. */
  let url: URL;
  beforeEach(async () => {
    url = new URL(postgresStore());
    await askPostgres(url.href, `create schema ${url.searchParams.get('schema')} authorization guarded`);
    url.username = 'guarded';
  });

  const create = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    testCli(url.href).runProcess(['apikey', 'create', 'CI', '--roles', 'GUEST', ...args], { env });

  function passwordFile(...lines: string[]): string {
    const file = join(tempFolder(), '.pgpass');
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
    return file;
  }

  it('can be in the file of PGPASSFILE, in the first line that is for the connection', async () => {
    const { hostname, port, pathname } = url;
    const own = [hostname, port, pathname.slice(1), 'guarded'];
    const file = passwordFile(
      `# ${own.join(':')}:comment`,
      ...Array.from({ length: 200 }, (_, at) => `db-${at}.internal.example.org:5432:keys:svc:some other password`),
      ...own.map((_, at) => `${own.with(at, 'other').join(':')}:wrong`),
      `*:${port}:*:g\\uarded:open\\ sesame`,
      '*:*:*:*:wrong',
    );
    const { code, stdout, stderr } = await create({ PGPASSFILE: file });
    assert.equal(code, 0, stderr);
    assert.match(stdout.trim(), SECRET);
    assert.match(stderr, /^Created API key .*\n$/);
  });

  it('can be in .pgpass in the home', async () => {
    const file = passwordFile('*:*:*:*:open sesame');
    const { code, stderr } = await create({ HOME: join(file, '..') });
    assert.equal(code, 0, stderr);
  });

  it('comes from PGPASSWORD rather than from a file', async () => {
    const file = passwordFile('*:*:*:*:wrong');
    const { code, stderr } = await create({ PGPASSFILE: file, PGPASSWORD: 'open sesame' });
    assert.equal(code, 0, stderr);
  });

  it('is missing if no line of the file is for the connection', async () => {
    const { code, stderr } = await create({ PGPASSFILE: passwordFile('*:*:*:other:open sesame') });
    assert.equal(code, 1);
    assert.match(stderr, /refuses the user or the password.*\nCode: STORE_UNAVAILABLE\n/);
  });

  it('is not taken from a file that other users can read, or that is missing', async () => {
    const file = passwordFile('*:*:*:*:open sesame');
    chmodSync(file, 0o644);
    for (const [path, reason] of [
      [file, 'can be accessed by other users. Run chmod 600 on it'],
      [`${file}.missing`, 'does not exist'],
    ] as const) {
      const { code, stderr } = await create({ PGPASSFILE: path });
      assert.equal(code, 1, stderr);
      assert.ok(stderr.includes(path) && stderr.includes(reason), stderr);
      assert.match(stderr, /^Code: STORE_UNAVAILABLE$/m);
    }
  });
});
