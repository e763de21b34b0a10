import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import Database from 'better-sqlite3';
import { openTestKeys } from '../support/keys.ts';
import { BIN, cleanEnv, type Finished, finished, ROOT, runCliWithInput } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { lookUp } from '../../src/keys/authentication/look-up.ts';

const TEXT = readFileSync(join(ROOT, 'docs/apply.md'), 'utf8');
const blocksOf = (language: string) =>
  Array.from(TEXT.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms')), (match) => match[1]!);
const blockWith = (text: string) => blocksOf('sh').find((block) => block.includes(text))!;
const SECRET = 'QxVtRbKpLmNwZyHsGdFcJaQxVtRbKpLmNwZyHsGdFcJaQxVtRbKpLmNwZyHsGdFcJa';
const digest = (encoding: 'base64' | 'base64url') => createHash('sha256').update(SECRET).digest(encoding);

describe('docs/apply.md, on keys from elsewhere', () => {
  let folder: string;
  let database: string;
  beforeEach(() => {
    folder = tempFolder();
    database = join(folder, 'keys.sqlite');
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  });

  /** Runs an example in a new folder, on this Node. */
  function run(block: string): Promise<Finished> {
    // A fallback for machines without sqlite3, last in the PATH.
    const path = [process.env['PATH'], join(ROOT, 'test/support/bin')].join(delimiter);
    const script = block.replaceAll(/\bsvc-api(?= apikey)/g, `"${process.execPath}" "${BIN}"`);
    return finished(
      spawn('bash', ['-ec', `set -o pipefail\n${script}`], {
        cwd: folder,
        env: cleanEnv({ PATH: path, SVC_API_DATABASE: database }),
      }),
    );
  }
  function table(file: string, create: string, insert: string, rows: unknown[][]): void {
    const other = new Database(join(folder, file));
    other.exec(create);
    for (const row of rows) other.prepare(insert).run(...row);
    other.close();
  }
  async function keyOf(secret: string, store = database) {
    const test = await openTestKeys({ database: store });
    const found = await lookUp(secret, test.store.repository, test.time.now);
    await test.store.close();
    return found;
  }

  it('has lines that can be imported', async () => {
    const { stderr, code } = await runCliWithInput(blocksOf('json')[0]!, ['apikey', 'import', '--database', database]);
    assert.deepEqual([stderr, code], ['Imported 2 API keys.\n', 0]);
  });

  it('brings keys of better-auth in', async () => {
    table(
      'auth.sqlite',
      'CREATE TABLE apikey (id text primary key, name text, start text, prefix text, key text, userId text, enabled integer, expiresAt date, createdAt date, permissions text)',
      "INSERT INTO apikey VALUES (?, ?, 'sk_liv', 'sk_live_', ?, 'user', ?, ?, '2025-01-02T03:04:05.678Z', ?)",
      [
        [
          'Zk3Jq9xTbYw2',
          'build-bot_1',
          digest('base64url'),
          1,
          '2031-01-01T00:00:00.000Z',
          '{"services":["read","update"]}',
        ],
        ['Pm7Lr4vQcXs8', null, createHash('sha256').update('other').digest('base64url'), 0, null, null],
      ],
    );
    const { stdout, stderr, code } = await run(blockWith('auth.sqlite'));
    assert.equal(code, 0, stdout + stderr);
    const { key, refused } = await keyOf(SECRET);
    assert.equal(refused, undefined);
    const { id: _id, publicId: _publicId, ...fields } = key;
    assert.deepEqual(fields, {
      name: 'build bot 1 Zk3Jq9xT',
      description: null,
      owner: null,
      tags: [],
      metadata: null,
      roles: ['GUEST'],
      permissions: ['SERVICES:READ_ANY', 'SERVICES:UPDATE_ANY'],
      limits: [],
      allowFrom: null,
      audience: null,
      createdAt: Date.UTC(2025, 0, 2, 3, 4, 5, 678),
      createdBy: null,
      expiresAt: Date.UTC(2031, 0, 1),
      disabledAt: null,
      managed: false,
      person: null,
      rotation: null,
    });
    const disabled = await keyOf('other');
    assert.deepEqual([disabled.refused, disabled.key?.name], ['disabled', 'Pm7Lr4vQ']);
  });

  it('brings keys of Unkey in', async () => {
    const rows = [
      { name: 'Worker', hash: digest('base64'), enabled: 1, expires: Date.UTC(2031, 0, 1) },
      { name: 'Off', hash: createHash('sha256').update('other').digest('base64'), enabled: 0, expires: null },
    ];
    writeFileSync(join(folder, 'unkey.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    const { stdout, stderr, code } = await run(blockWith('unkey.jsonl'));
    assert.equal(code, 0, stdout + stderr);
    const { key } = await keyOf(SECRET);
    assert.deepEqual([key?.name, key?.expiresAt], ['Worker', Date.UTC(2031, 0, 1)]);
    assert.equal((await keyOf('other')).refused, 'disabled');
  });

  it('brings keys of a table of one’s own in, and moves them on', async () => {
    table(
      'app.sqlite',
      'CREATE TABLE tokens (label text, token text, is_admin integer, revoked_at text)',
      'INSERT INTO tokens VALUES (?, ?, ?, ?)',
      [
        ['Ops', SECRET, 1, null],
        ['Reader', 'sk_live_reader-reader-reader', 0, null],
        ['Gone', 'sk_live_gone-gone-gone-gone', 0, '2025-01-01'],
      ],
    );
    const { stdout, stderr, code } = await run(blockWith('app.sqlite'));
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual((await keyOf(SECRET)).key?.roles, ['ADMIN']);
    assert.equal((await keyOf('sk_live_gone-gone-gone-gone')).key, undefined);

    const plain = await run(`${blockWith('--to keys.jsonl')}cat keys.jsonl`);
    assert.match(plain.stdout, /^\{"id":.*"name":"Ops".*\}$/m);
    assert.equal(plain.stdout.includes('sha256'), false);
    const moved = await run(blockWith('other.sqlite'));
    assert.equal(moved.code, 0, moved.stdout + moved.stderr);
    assert.deepEqual((await keyOf(SECRET, join(folder, 'other.sqlite'))).key?.roles, ['ADMIN']);
  });
});
