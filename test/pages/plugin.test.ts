import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SECRET } from '../support/cli.ts';
import { type Host, hostAt, hostEnv, mustRun, packedFile, serveHost, withFile } from '../support/host.ts';
import { blocksOf, blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const PAGE = 'docs/library.md';
const LANGUAGES = ['js', 'json'] as const;
const used = new Set<string>();

/** The block with a text, unchanged. */
function block(text: string, language: (typeof LANGUAGES)[number]): string {
  const found = blockWith(text, PAGE, language);
  used.add(found);
  return found;
}

describe('docs/library.md', () => {
  let host: Host;
  before(async () => {
    const folder = join(tempFolder(), 'acme');
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    };
    // The package as published, and the packages that the page's program uses.
    const packages = `"svc-api": "file:${packedFile()}", "hono": "^4", "graphql": "^16", "@pothos/core": "^4"`;
    write('package.json', block('"dependencies"', 'json').replace(/"svc-api": "file:[^"]*"/, packages));
    write('bin/run.js', block('execute({ dir: import.meta.url })', 'js'));
    write('hooks/schema.js', block('export default async function schema()', 'js'));
    write('resolvers.js', block('export const resolvers', 'js'));
    const body = block('this.config.runCommand', 'js');
    const imported = `import { Command } from '@oclif/core';`;
    write(
      'commands/deploy.js',
      `${imported}\nexport default class extends Command {\n async run() {\n${body}\n this.log(String(keys.length)); } }`,
    );
    const pages = block('let after', 'js');
    const inStore = block('keysOf(this.config)', 'js').replace('await keys.close', `${pages}\nawait keys.close`);
    write(
      'commands/found.js',
      `${imported}\nimport { keysOf, OPERATOR } from 'svc-api';
      export default class extends Command {
        async run() {\n${inStore}\n this.log(String(found.length)); }
      }`,
    );
    await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
    });
    host = hostAt(folder);
  });

  it('has a package.json with which a host has the commands, as the page types them', async () => {
    const created = await host.cli(['apikey', 'create', '--name', 'Recipe', '--permissions', 'BACKUP:READ_ANY']);
    assert.match(created.stdout.trim(), SECRET, created.stderr);
    const listed = await host.cli(['apikey', 'list']);
    assert.match(listed.stdout, /Recipe/);
    const { stderr, code } = await host.cli(['apikey', 'show', 'Nobody']);
    assert.match(stderr, /Run "acme apikey list" to see all/);
    assert.equal(code, 1);
    assert.equal((await host.cli(['apikey:list'])).code, 0, 'a colon is taken as well');
  });

  it('names the command that was meant, where the host has colons', async () => {
    const colons = (text: string) => text.replace(/ *"topicSeparator": " ",\n/, '');
    await withFile(join(host.folder, 'package.json'), colons, async () => {
      for (const flags of [[], ['--name', 'Other', '--roles', 'VIEWER'], ['--dry-run']]) {
        const { stderr, code } = await host.cli(['apikey', 'create', ...flags]);
        const said = 'Error: Commands of acme are written with ":" between words: "acme apikey:create".';
        assert.deepEqual([stderr.split('\n')[0], code], [said, 2]);
      }
      const { stderr } = await host.cli(['apikey:create', '--name', 'Other', '--roles', 'VIEWER']);
      assert.match(stderr, /^Created API key "Other"/);
    });
  });

  it('has a command of the host that runs ours, and goes on where the name is taken', async () => {
    const runs = [await host.cli(['deploy']), await host.cli(['deploy'])];
    assert.deepEqual(
      runs.map(({ code }) => code),
      [0, 0],
    );
    assert.deepEqual(
      runs.map(({ stderr }) => stderr),
      ['', ''],
    );
    const found = await host.cli(['found']);
    assert.match(found.stdout, /^(.+\n)*CI deploy\n(.+\n)*1\n$/, found.stderr);
  });

  it('has a setting for a store of the host', async () => {
    const { oclif } = JSON.parse(block('"database"', 'json')) as { oclif: object };
    const set = (text: string) => {
      const manifest = JSON.parse(text) as { oclif: object };
      return JSON.stringify({ ...manifest, oclif: { ...manifest.oclif, ...oclif } });
    };
    const { stdout } = await withFile(join(host.folder, 'package.json'), set, () =>
      host.cli(['apikey', '--delete', '--json']),
    );
    assert.match(stdout, /there are none in \S+\/home\/acme\/keys\.sqlite"/);
  });

  it('has a hook and resolvers whose part of the schema is served', async () => {
    const { stdout } = await host.cli(['apikey', 'create', '--name', 'Reader', '--permissions', 'BACKUP:READ_ANY']);
    const server = await serveHost(host);
    try {
      const reply = await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { authorization: `Bearer ${stdout.trim()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ query: '{ backups { id } }' }),
      });
      assert.deepEqual(await reply.json(), { data: { backups: [{ id: 'sda-1' }] } });
    } finally {
      await server.stop();
    }
  });

  it('has a program that serves a schema of its own', async () => {
    const permissions = ['--permissions', 'PET:READ_ANY'];
    const config = join(host.folder, 'svc-api.yaml');
    writeFileSync(config, 'resources: [PET]\n');
    const created = await host.cli(['apikey', 'create', '--name', 'Ann', ...permissions, '--config', config]);
    const port = await freePort();
    const file = join(host.folder, 'pets.mjs');
    writeFileSync(file, block("'Query.pets'", 'js').replace('4000', String(port)));
    const child = spawn(process.execPath, [file], {
      cwd: host.folder,
      env: hostEnv({ XDG_DATA_HOME: join(host.folder, 'home') }),
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    try {
      const ask = () =>
        fetch(`http://127.0.0.1:${port}/graphql`, {
          method: 'POST',
          headers: { authorization: `Bearer ${created.stdout.trim()}`, 'content-type': 'application/json' },
          body: JSON.stringify({ query: '{ pets }' }),
        });
      await until(() => ask().then(Boolean, () => false));
      assert.deepEqual(await (await ask()).json(), { data: { pets: ['Tom of Ann'] } });
    } finally {
      child.kill();
    }
  });

  it('opens the store with resources and actions of its own, and checks a request', async () => {
    const file = join(host.folder, 'articles.mjs');
    writeFileSync(
      file,
      `${block("resources: ['ARTICLES']", 'js')}
      import { OPERATOR } from 'svc-api';
      const permission = 'ARTICLES:PUBLISH';
      const { key } = await keys.create({ name: 'Publisher', permissions: [permission] }, { actor: OPERATOR });
      const handle = async (request) => {
        ${block('await keys.check(request', 'js')}
      };
      const headers = { authorization: \`Bearer \${key}\` };
      for (const init of [{}, { headers }])
        console.log(await (await handle(new Request('http://127.0.0.1/', init))).text());
      await keys.close();`,
    );
    const env = hostEnv({ SVC_API_DATABASE: ':memory:' });
    const shown = execFileSync(process.execPath, [file], { cwd: host.folder, env, encoding: 'utf8' });
    assert.match(shown, /^{"code":"UNAUTHENTICATED",.*\n{"by":"Publisher"}\n$/);
  });

  it('chooses the features of the page, and has no commands of others', async () => {
    const file = join(host.folder, 'package.json');
    const before = readFileSync(file, 'utf8');
    const chosen = JSON.parse(block('"features"', 'json')) as object;
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(before) as object), ...chosen }));
    try {
      assert.equal((await host.cli(['apikey', 'apply', '--help'])).code, 0);
      assert.notEqual((await host.cli(['apikey', 'scan', '--help'])).code, 0);
    } finally {
      writeFileSync(file, before);
    }
  });

  after(() => {
    const left = LANGUAGES.flatMap((language) => blocksOf(PAGE, language)).filter((each) => !used.has(each));
    assert.deepEqual(left, [], 'blocks that nothing runs');
  });
});
