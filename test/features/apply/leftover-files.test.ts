import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hiddenName } from '../../../src/features/apply/cli/secret-files.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { type TestApply, testApply } from '../../support/apply.ts';

describe('apply, after one that was killed', () => {
  let test: TestApply;
  let secrets: string;
  /** The id of a process that has ended. */
  const gone = spawnSync('true').pid;
  const hidden = (pid: number | undefined = gone, location = test.cli.database) =>
    join(test.secrets, hiddenName(location, randomBytes(8).toString('hex')).replace(`-${process.pid}-`, `-${pid}-`));
  const elsewhere = () => hidden().replace(/(\.svc-api-[0-9a-f]{8}-)[0-9a-f]{8}/, '$100000000');
  const secret = () => createSecret(randomBytes).text;
  /** Applies, and returns how many files were reported as removed, recovered and left alone. */
  const tidied = async () => {
    const { stderr } = await test.apply(['--secrets-dir', test.secrets]);
    return ['Removed', 'Recovered', 'Left alone'].map((outcome) => {
      const line = stderr.split('\n').find((text) => text.startsWith(`${outcome}: `));
      const more = / and (\d+) more,/.exec(line ?? '')?.[1] ?? 0;
      return (line?.match(/\.svc-api-/g)?.length ?? 0) + Number(more);
    });
  };
  const inFile = (name: string) => readFileSync(join(test.secrets, name), 'utf8').trim();

  beforeEach(async () => {
    test = testApply();
    secrets = test.secrets;
    test.declare('keys: [{name: Known, roles: [GUEST]}]');
    assert.equal((await test.apply(['--secrets-dir', secrets])).code, 0);
  });

  it('says nothing where nothing was left', async () => {
    assert.deepEqual(await tidied(), [0, 0, 0]);
  });

  it('removes a secret that works nowhere, as from before the commit', async () => {
    writeFileSync(hidden(), secret());
    writeFileSync(`${hidden()}-previous`, secret());
    writeFileSync(hidden(), '');
    assert.deepEqual(await tidied(), [3, 0, 0]);
    assert.deepEqual(readdirSync(secrets), ['Known']);
  });

  it('names five of many', async () => {
    for (let file = 0; file < 12; file += 1) writeFileSync(hidden(), secret());
    assert.deepEqual(await tidied(), [12, 0, 0]);
  });

  it('gives a secret that works its file, as from after the commit', async () => {
    const { key } = await test.cli.given('Made', { roles: ['GUEST'] });
    const older = join(secrets, 'Made');
    writeFileSync(older, secret());
    const file = hidden();
    writeFileSync(file, key);
    linkSync(older, `${file}-previous`);
    assert.deepEqual(await tidied(), [1, 1, 0]);
    assert.deepEqual([readdirSync(secrets), inFile('Made')], [['Known', 'Made'], key]);
  });

  it('removes a copy of a secret that is in its file', async () => {
    writeFileSync(`${hidden()}-previous`, inFile('Known'));
    assert.deepEqual(await tidied(), [1, 0, 0]);
    assert.deepEqual(readdirSync(secrets), ['Known']);
  });

  it('replaces no other secret that works, and touches nothing that is not its own', async () => {
    const { key } = await test.cli.given('Made', { roles: ['GUEST'] });
    const { key: other } = await test.cli.given('Other', { roles: ['GUEST'] });
    writeFileSync(join(secrets, 'Made'), other);
    const kept = hidden();
    writeFileSync(kept, key);
    symlinkSync('/dev/zero', hidden());
    mkdirSync(hidden());
    for (const name of ['.svc-api-notes', '.svc-api-12-short', 'svc-api-0123456789abcdef'])
      writeFileSync(join(secrets, name), '');
    const before = readdirSync(secrets);
    assert.deepEqual(await tidied(), [0, 0, 3]);
    assert.deepEqual(readdirSync(secrets), before);
    assert.deepEqual([inFile('Made'), readFileSync(kept, 'utf8')], [other, key]);
  });

  it('leaves the files of one that is still at work, here or maybe elsewhere', async () => {
    for (const file of [hidden(process.ppid), elsewhere()]) writeFileSync(file, secret());
    assert.deepEqual(await tidied(), [0, 0, 0]);
    assert.equal(readdirSync(secrets).length, 3);
  });

  it('treats files older than ten minutes as left over, wherever they were written', async () => {
    const past = Date.now() / 1000 - 601;
    for (const file of [hidden(process.ppid), elsewhere()]) {
      writeFileSync(file, secret());
      utimesSync(file, past, past);
    }
    assert.deepEqual(await tidied(), [2, 0, 0]);
  });

  it('leaves the files of another store, where their secrets may work', async () => {
    writeFileSync(hidden(gone, '/another.sqlite'), secret());
    assert.deepEqual(await tidied(), [0, 0, 0]);
    assert.equal(readdirSync(secrets).length, 2);
  });

  it('goes on where a file cannot be read or removed', async () => {
    const folder = hidden();
    mkdirSync(folder);
    writeFileSync(hidden(), 'notes of mine');
    writeFileSync(hidden(), secret());
    assert.deepEqual(await tidied(), [1, 0, 2]);
    assert.equal(readdirSync(secrets).length, 3);
  });

  it('touches nothing in a dry run', async () => {
    writeFileSync(hidden(), secret());
    await test.apply(['--secrets-dir', secrets, '--dry-run']);
    assert.equal(readdirSync(secrets).length, 2);
  });
});
