import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { testCli } from '../support/cli.ts';
import { changeDirectly, unlockAuditLog } from '../support/direct.ts';
import { blocksOf, blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { type Finished, ROOT } from '../support/process.ts';
import { namesIn } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/backup.md';

describe('docs/backup.md', () => {
  let folder: string;
  let cli: ReturnType<typeof testCli>;
  let run: (block: string) => Promise<Finished>;
  beforeEach(async () => {
    folder = tempFolder();
    cli = testCli(join(folder, 'store', 'keys.sqlite'));
    const env = { PATH: pathWithCli(folder), SVC_API_DATABASE: cli.database };
    run = (block) => runBlock(block, folder, env);
    await cli.given('Before');
  });
  const [make] = blocksOf(PAGE) as [string];

  it('makes a backup, says what restoring it would do, and asks before it does', async () => {
    assert.equal((await run(make)).code, 0);
    const name = readdirSync(folder).find((each) => /^keys-\d{4}-\d\d-\d\d\.sqlite$/.test(each));
    assert.equal(statSync(join(folder, name!)).mode & 0o777, 0o600);
    await cli.given('After');
    const { code, stdout, stderr } = await run(blockWith('--dry-run\nsvc-api restore', PAGE));
    assert.deepEqual(
      [code, /1 key was created since, and will be deleted:\n {2}After/.test(stdout)],
      [2, true],
      stderr,
    );
    assert.deepEqual(await namesIn(cli.database), ['After', 'Before']);
    const restored = await run(`${blockWith('--dry-run\nsvc-api restore', PAGE).trim()} --yes`);
    assert.equal(restored.code, 0, restored.stderr);
    assert.deepEqual(await namesIn(cli.database), ['Before']);
  });

  it('puts it in the place of a store that is lost', async () => {
    const { code, stderr } = await run(`${make}rm "$SVC_API_DATABASE"\n${blockWith('" --force', PAGE).trim()} --yes`);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /skips the comparison with the present store/);
    assert.deepEqual(await namesIn(cli.database), ['Before']);
  });

  it('brings back one key, and leaves the others', async () => {
    await cli.given('CI deploy');
    assert.equal((await run(make)).code, 0);
    assert.equal((await run('svc-api apikey delete "CI deploy" --yes')).code, 0);
    await cli.given('After');
    const { code, stderr } = await run(blockWith('second.sqlite', PAGE));
    assert.equal(code, 0, stderr);
    assert.deepEqual(await namesIn(cli.database), ['After', 'Before', 'CI deploy']);
  });

  it('imports the keys of one whose audit log is broken, which restore refuses', async () => {
    await unlockAuditLog(cli.database);
    await changeDirectly(cli.database, "update audit_log set action = 'UPDATE' where number = 1");
    assert.equal((await run(make)).code, 1);
    const refused = await run('mv keys-*.sqlite broken.sqlite && svc-api restore broken.sqlite --force --yes');
    assert.deepEqual([refused.code, /BACKUP_INVALID/.test(refused.stderr)], [1, true], refused.stderr);
    const { code, stderr } = await run(blockWith('broken.sqlite', PAGE));
    assert.equal(code, 0, stderr);
    assert.deepEqual(await namesIn(join(folder, 'new.sqlite')), ['Before']);
    const { stdout } = await run('svc-api apikey log --verify --database new.sqlite');
    assert.match(stdout, /^The audit log is intact/);
  });

  it('keeps those of one week', async () => {
    mkdirSync(join(folder, 'backups'));
    const nightly = blockWith('%u', PAGE).replace('/var/backups/svc-api', join(folder, 'backups'));
    for (let night = 0; night < 2; night += 1) assert.equal((await run(nightly)).code, 0);
    assert.match(readdirSync(join(folder, 'backups')).join(), /^keys-[1-7]\.sqlite$/);
  });

  it('restores what Litestream fetches', async () => {
    assert.equal((await run('svc-api backup replica.sqlite')).code, 0);
    await cli.given('After');
    const stub = 'litestream() { test "$1 $2" = "restore -o" && cp replica.sqlite "$3" && chmod 644 "$3"; }\n';
    const { code, stdout, stderr } = await run(stub + blockWith('litestream restore', PAGE));
    assert.equal(code, 0, stderr);
    assert.match(stdout, /After \(svc_/);
  });

  it('shows the configuration of Litestream that is an example', () => {
    const [shown] = blocksOf(PAGE, 'yaml') as [string];
    const example = readFileSync(join(ROOT, 'examples/litestream.yml'), 'utf8');
    assert.deepEqual(parse(shown), parse(example));
  });

  it('finds nothing wrong', async () => {
    const { code, stdout } = await run(blockWith('svc-api doctor\n', PAGE));
    assert.deepEqual([code, stdout.endsWith('No problems found.\n')], [0, true], stdout);
  });
});
