import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly } from '../support/direct.ts';
import { type Finished, runCli } from '../support/process.ts';
import { runProgramHere } from '../support/program-here.ts';
import { makeStore, tempFolder, tempStore } from '../support/temp.ts';

/** The completion of a line with the cursor at its end, by default run in this process. */
function ask(
  shell: string,
  line: string,
  env: NodeJS.ProcessEnv = {},
  run: typeof runCli | typeof runProgramHere = runProgramHere,
): Promise<Finished> {
  const breaks = ` \t\n"'><=;|&(:`;
  return run(['autocomplete', shell, '--complete'], { env: { COMP_LINE: line, COMP_WORDBREAKS: breaks, ...env } });
}

const NOTHING: Finished = { stdout: '', stderr: '', code: 0, signal: null };

/** The candidates that a shell gets, without the line before them. */
async function words(shell: string, line: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const { stdout, stderr, code } = await ask(shell, line, env);
  assert.deepEqual([stderr, code], ['', 0]);
  return stdout.split('\n').slice(1, -1);
}

describeOnEach('completion of names', (dialect) => {
  let env: NodeJS.ProcessEnv;
  before(async () => {
    const cli = testCli();
    env = { SVC_API_DATABASE: cli.database };
    for (const name of ['CI deploy', 'CI test', 'Zoë 2']) await cli.given(name);
  });

  it('finds those with the typed prefix, as each shell writes them', async () => {
    assert.deepEqual(await words('bash', 'svc-api apikey show C', env), ['CI\\ deploy', 'CI\\ test']);
    assert.deepEqual(await words('bash', 'svc-api apikey show CI\\ d', env), ['CI\\ deploy']);
    assert.deepEqual(await words('bash', 'svc-api apikey show "CI d', env), ['CI deploy']);
    assert.deepEqual(await words('zsh', "svc-api apikey show 'CI d", env), ['CI deploy']);
    assert.deepEqual(await words('fish', 'svc-api apikey show --name=CI\\ d', env), ['--name=CI deploy']);
    assert.deepEqual(await words('fish', 'svc-api apikey show ', env), ['CI deploy', 'CI test', 'Zoë 2']);
    // Decomposed, as some keyboards send it.
    assert.deepEqual(await words('bash', 'svc-api apikey show Zoe\u0308', env), ['Zoë\\ 2']);
  });

  it('finds keys that others answer to, by both flags', async () => {
    assert.deepEqual(await words('fish', 'svc-api apikey list --owner CI\\ d', env), ['CI deploy']);
    assert.deepEqual(await words('fish', 'svc-api apikey update --where-owner CI\\ d', env), ['CI deploy']);
  });

  it('finds the first of many and the last, which have in common what all have', async () => {
    const many = testCli();
    const lines = Array.from({ length: 150 }, (_, index) => {
      const sha256 = index.toString(16).padStart(64, '0');
      return JSON.stringify({ name: `Key ${String(index).padStart(3, '0')}`, sha256, roles: ['GUEST'] });
    });
    const file = join(tempFolder(), 'keys.jsonl');
    writeFileSync(file, lines.join('\n'));
    assert.equal((await many.run(['apikey', 'import', file])).code, 0);
    const found = await words('fish', 'svc-api apikey show ', { SVC_API_DATABASE: many.database });
    assert.deepEqual([found.length, found[0], found[99], found[100]], [101, 'Key 000', 'Key 099', 'Key 149']);
  });

  it('asks no server', async () => {
    const server = { SVC_API_SERVER: 'https://keys.example.org', SVC_API_DATABASE: env['SVC_API_DATABASE'] };
    assert.deepEqual(await ask('bash', 'svc-api apikey show C', server), NOTHING);
    assert.deepEqual(await ask('bash', 'svc-api apikey show --server https://a.example C', env), NOTHING);
    const line = `svc-api apikey show --database ${env['SVC_API_DATABASE']} CI\\ d`;
    assert.deepEqual(await words('bash', line, { SVC_API_SERVER: 'https://keys.example.org' }), ['CI\\ deploy']);
  });

  it('finds those of a backup that can be restored, and leaves nothing beside it', async () => {
    const cli = testCli();
    for (const name of ['CI deploy', 'CI test']) await cli.given(name);
    const folder = tempFolder();
    const backup = join(folder, 'keys.sqlite');
    assert.equal((await cli.run(['backup', backup])).code, 0);
    await cli.run(['apikey', 'delete', 'CI test']);
    const own = { SVC_API_DATABASE: cli.database };
    assert.deepEqual(await words('bash', `svc-api restore ${backup} --restore-revoked CI\\ t`, own), ['CI\\ test']);
    assert.deepEqual(await words('fish', `svc-api restore ${backup} --restore-revoked=CI\\ t`, own), [
      '--restore-revoked=CI test',
    ]);
    const twice = `svc-api restore --database ${tempStore()} ${backup} --restore-revoked 'CI test' --restore-revoked `;
    assert.deepEqual(await words('zsh', twice, own), ['CI deploy', 'CI test']);
    assert.deepEqual(readdirSync(folder), ['keys.sqlite']);
  });

  it('creates no store', async () => {
    const database = tempStore();
    assert.deepEqual(await ask('bash', 'svc-api apikey show C', { SVC_API_DATABASE: database }), NOTHING);
    const list = await runCli(['apikey', 'list'], { env: { SVC_API_DATABASE: database } });
    assert.match(list.stderr, /does not exist/);
    if (dialect === 'sqlite') assert.ok(!existsSync(database));
  });

  it('gives a shell nothing but names, whatever another program wrote', async () => {
    const hostile = testCli();
    const names = [
      '$(touch pwned)',
      '`touch pwned`',
      'x; touch pwned',
      '-rf',
      'a\nb',
      'a\tb',
      '\u001b[2J',
      "a'b",
      'a\u202eb',
    ];
    for (const [index, name] of names.entries()) {
      await hostile.given(`Key ${index}`);
      await changeDirectly(
        hostile.database,
        `update api_keys set name = '${name.replaceAll("'", "''")}' where name = 'Key ${index}'`,
      );
    }
    await hostile.given('Good one');
    const own = { SVC_API_DATABASE: hostile.database };
    assert.deepEqual(await words('bash', 'svc-api apikey show ', own), ['Good\\ one']);
    assert.deepEqual(await words('zsh', 'svc-api apikey show ', own), ['Good one']);
    assert.deepEqual(await words('fish', 'svc-api apikey show ', own), ['Good one']);
  });
});

describe('completion, on any store', () => {
  const line = (database: string) => `svc-api apikey show --database ${database} C`;

  it('says nothing where it is damaged, locked, of another program, a folder or a device', async () => {
    const [damaged, locked] = [testCli(), testCli()];
    for (const cli of [damaged, locked]) await cli.given('CI');
    truncateSync(damaged.database, 3000);
    const holder = new Database(locked.database);
    holder.exec('pragma locking_mode = exclusive; begin exclusive; delete from sessions');
    const notes = join(tempFolder(), 'notes.txt');
    writeFileSync(notes, 'This is no key store, and it stays as it is.');
    try {
      for (const database of [damaged.database, locked.database, notes, tempFolder(), '/dev/zero', 'mysql://x/y'])
        assert.deepEqual(await ask('bash', line(database)), NOTHING, database);
    } finally {
      holder.close();
    }
  });

  it('does not migrate an older one', async () => {
    const folder = tempFolder();
    const database = join(folder, 'keys.sqlite');
    await makeStore(database);
    await changeDirectly(database, 'pragma user_version = 27');
    const before = readFileSync(database);
    assert.deepEqual(await ask('bash', line(database)), NOTHING);
    assert.deepEqual(readFileSync(database), before);
    assert.deepEqual(readdirSync(folder), ['keys.sqlite']);
  });

  it('gives up where a server does not answer', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    try {
      assert.deepEqual(await ask('bash', line(`postgres://nobody@127.0.0.1:${port}/keys`), {}, runCli), NOTHING);
    } finally {
      silent.close();
    }
  });
});

describe('what is completed', () => {
  it('are files and folders where a command takes one, and nowhere else', async () => {
    const kinds = {
      'apikey apply -f ': 'files',
      'apikey apply --file=': 'files',
      'apikey apply --secrets-dir ': 'folders',
      'apikey scan one ': 'files',
      'apikey import ': 'files',
      'apikey export --to ': 'files',
      'apikey list --database ': 'files',
      'serve --database ': 'files',
      'serve --config ': 'files',
      'apikey import one ': '',
      'apikey create --description ': '',
      'apikey create --name ': '',
      'apikey exec --name ': '',
      'apikey exec --roles GUEST -- ': '',
      'apikey list --search ': '',
      'apikey list ': '',
      'serve --host ': '',
      'nothing ': '',
    };
    const got = Object.fromEntries(
      await Promise.all(
        Object.keys(kinds).map(async (line) => [line, (await ask('bash', `svc-api ${line}`)).stdout.split('\n', 1)[0]]),
      ),
    );
    assert.deepEqual(got, kinds);
  });

  it('are flags that are not there yet, and no hidden command', async () => {
    const flags = await words('zsh', 'svc-api apikey export --to x --');
    assert.deepEqual(
      flags.map((flag) => flag.split('\t')[0]),
      ['--json', '--database', '--config', '--no-color', '--with-digests', '--overwrite', '--help'],
    );
    assert.match(flags[1]!, /^--database\tPath or postgres:\/\/ URL of the key store\. /);
    const commands = await words('bash', 'svc-api apikey ');
    for (const command of ['list', 'ls', 'rm', 'add']) assert.ok(commands.includes(command), command);
    const flagsOfCompletion = await words('bash', 'svc-api autocomplete bash --');
    assert.ok(!flagsOfCompletion.includes('--complete'));
  });

  it('are the values of a flag also after another name of it', async () => {
    for (const line of ['--where-status ', '--status ', '--status=']) {
      const values = await words('fish', `svc-api apikey update ${line}a`);
      assert.deepEqual(
        values.map((value) => value.replace(/^--status=/, '')),
        ['active'],
        line,
      );
    }
  });

  it('are methods, names and permissions where a request is explained', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    const env = { SVC_API_DATABASE: cli.database };
    const line = 'svc-api explain GET https://example.org/ --';
    assert.deepEqual(await words('fish', 'svc-api explain P'), ['POST', 'PUT', 'PATCH']);
    assert.deepEqual(await words('fish', 'svc-api explain C', env), ['CI deploy']);
    assert.deepEqual(await words('fish', 'svc-api explain "CI deploy" DOCKER:READ_O', env), ['DOCKER:READ_OWN']);
    assert.equal((await ask('fish', 'svc-api explain GET h', env)).stdout, '');
    assert.equal((await ask('fish', 'svc-api explain ./to', env)).stdout, 'files\n');
    assert.deepEqual(await words('fish', `${line}key C`, env), ['CI deploy']);
    assert.deepEqual(await words('fish', `${line}permissions DOCKER:READ_O`), ['DOCKER:READ_OWN']);
  });

  it('are also the words of our own program that are no commands', async () => {
    assert.deepEqual(await words('bash', 'svc-api v'), ['version']);
    assert.deepEqual(await words('bash', 'svc-api help e'), ['edge', 'explain', 'environment', 'exit-codes']);
    assert.deepEqual(await words('bash', 'svc-api apikey e'), ['enable', 'exec', 'export']);
  });

  it("are also the installation's own resources and roles, by the configuration that the line names", async () => {
    const folder = tempFolder();
    const [one, two] = [join(folder, 'one.yaml'), join(folder, 'two.yaml')];
    writeFileSync(one, 'resources: [WIKI]\nactions: [PUBLISH]\nroles: { EDITOR: [WIKI:READ_ANY] }');
    writeFileSync(two, 'roles: [');
    assert.deepEqual(await words('bash', `svc-api apikey create --config ${one} --roles VIEWER,E`), ['VIEWER,EDITOR']);
    assert.deepEqual(await words('bash', `SVC_API_CONFIG=${one} svc-api explain CI WI`), ['WIKI:']);
    assert.deepEqual(await words('bash', `SVC_API_CONFIG=${one} svc-api explain CI WIKI:P`), ['PUBLISH']);
    const broken = await words('bash', 'svc-api apikey create --roles ', { SVC_API_CONFIG: two });
    assert.deepEqual(broken, ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST']);
  });

  it('is not what the line would execute', async () => {
    const folder = tempFolder();
    const { stdout } = await runCli(['autocomplete', 'bash', '--complete'], {
      cwd: folder,
      env: { COMP_LINE: 'svc-api apikey --database $(touch pwned) --roles `touch pwned` --permissions DOC' },
    });
    assert.equal(stdout, 'open\nDOCKER:\n');
    assert.deepEqual(readdirSync(folder), []);
  });
});
