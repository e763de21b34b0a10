import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SECRET } from '../support/cli.ts';
import { type Host, hostAt, hostEnv, mustRun, packedFile, serveHost, withFile } from '../support/host.ts';
import { blocksOf, blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const ENTRY = 'docs/library.md';
const LANGUAGES = ['js', 'json'] as const;
const used = new Set<string>();

/** The block of a page with a text, unchanged. */
function block(text: string, language: (typeof LANGUAGES)[number], page: string): string {
  const found = blockWith(text, page, language);
  used.add(found);
  return found;
}

/** A package.json with more settings of oclif. */
function withOclif(text: string, oclif: object): string {
  const manifest = JSON.parse(text) as { oclif: object };
  return JSON.stringify({ ...manifest, oclif: { ...manifest.oclif, ...oclif } });
}

describe('the pages of the library', () => {
  let host: Host;
  before(async () => {
    const folder = join(tempFolder(), 'acme');
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    };
    // The package as published, and the packages that the page's program uses.
    const packages = `"svc-api": "file:${packedFile()}", "hono": "^4", "graphql": "^16", "@pothos/core": "^4"`;
    const manifest = block('"dependencies"', 'json', 'docs/library/cli.md');
    const { oclif } = JSON.parse(block('"hooks"', 'json', 'docs/library/cli-schema.md')) as { oclif: object };
    write('package.json', withOclif(manifest.replace(/"svc-api": "file:[^"]*"/, packages), oclif));
    write('bin/run.js', block('execute({ dir: import.meta.url })', 'js', 'docs/library/cli.md'));
    write('hooks/schema.js', block('export default async function schema()', 'js', 'docs/library/cli-schema.md'));
    write('resolvers.js', block('export const resolvers', 'js', 'docs/library/cli-schema.md'));
    const body = block('this.config.runCommand', 'js', 'docs/library/cli-commands.md');
    const imported = `import { Command } from '@oclif/core';`;
    write(
      'commands/deploy.js',
      `${imported}\nexport default class extends Command {\n async run() {\n${body}\n this.log(String(keys.length)); } }`,
    );
    const pages = block('let after', 'js', 'docs/library/managing.md');
    const inStore = block('keysOf(this.config)', 'js', 'docs/library/cli-commands.md').replace(
      'await keys.close',
      `${pages}\nawait keys.close`,
    );
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

  it('have a package.json with which a host has the commands, as the page types them', async () => {
    const created = await host.cli(['apikey', 'create', '--name', 'Recipe', '--permissions', 'BACKUP:READ_ANY']);
    assert.match(created.stdout.trim(), SECRET, created.stderr);
    const listed = await host.cli(['apikey', 'list']);
    assert.match(listed.stdout, /Recipe/);
    const { stderr, code } = await host.cli(['apikey', 'show', 'Nobody']);
    assert.match(stderr, /Run "acme apikey list" to see all/);
    assert.equal(code, 1);
    assert.equal((await host.cli(['apikey:list'])).code, 0, 'a colon is taken as well');
  });

  it('name the command that was meant, where the host has colons', async () => {
    const colons = (text: string) => text.replace('"topicSeparator":" ",', '');
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

  it('have a command of the host that runs ours, and goes on where the name is taken', async () => {
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

  it('have a setting for a store of the host', async () => {
    const { oclif } = JSON.parse(block('"database"', 'json', 'docs/library/cli.md')) as { oclif: object };
    const set = (text: string) => withOclif(text, oclif);
    const { stdout } = await withFile(join(host.folder, 'package.json'), set, () =>
      host.cli(['apikey', '--delete', '--json']),
    );
    assert.match(stdout, /there are none in \S+\/home\/acme\/keys\.sqlite"/);
  });

  it('have a hook and resolvers whose part of the schema is served', async () => {
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

  it('have a program that serves a schema of its own', async () => {
    const permissions = ['--permissions', 'PET:READ_ANY'];
    const config = join(host.folder, 'svc-api.yaml');
    writeFileSync(config, 'resources: [PET]\n');
    const created = await host.cli(['apikey', 'create', '--name', 'Ann', ...permissions, '--config', config]);
    const program = block("'Query.pets'", 'js', 'docs/library/service.md');
    await whileServing('pets.mjs', program, '4000', async (url) => {
      const answer = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { authorization: `Bearer ${created.stdout.trim()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ query: '{ pets }' }),
      });
      assert.deepEqual(await answer.json(), { data: { pets: ['Tom of Ann'] } });
    });
  });

  it('begin with an app that accepts only keys with the permission', async () => {
    const created = await host.cli(['apikey', 'create', '--name', 'Ada', '--permissions', 'DASHBOARD:READ_ANY']);
    await whileServing('app.mjs', block('new Hono()', 'js', ENTRY), '3000', async (url) => {
      assert.equal((await fetch(url)).status, 401);
      const answer = await fetch(url, { headers: { authorization: `Bearer ${created.stdout.trim()}` } });
      assert.equal(await answer.text(), 'Hello, Ada!');
    });
  });

  it('begin with a program that creates a key, and show how to open the store', () => {
    const env = hostEnv({ SVC_API_DATABASE: ':memory:' });
    const run = (name: string, program: string) => {
      const file = join(host.folder, name);
      writeFileSync(file, program);
      return execFileSync(process.execPath, [file], { cwd: host.folder, env, encoding: 'utf8' });
    };
    assert.match(run('create.mjs', block('keys.create(', 'js', ENTRY)).trim(), SECRET);
    const open = block('openKeys();', 'js', 'docs/library/opening.md');
    assert.equal(run('open.mjs', `${open}\nconsole.log(typeof keys.check);\nawait keys.close();`), 'function\n');
  });

  it('begin with a Worker that asks a server', async () => {
    const create = (name: string, permission: string) =>
      host.cli(['apikey', 'create', '--name', name, '--permissions', permission]);
    const token = (await create('Worker', 'API_KEY:READ_ANY')).stdout.trim();
    const key = (await create('Visitor', 'SERVICES:READ_ANY')).stdout.trim();
    const file = join(host.folder, 'worker.mjs');
    writeFileSync(file, block('svc-api/client', 'js', ENTRY));
    const { default: worker } = (await import(pathToFileURL(file).href)) as {
      default: { fetch(request: Request, env: object): Promise<Response> };
    };
    const server = await serveHost(host);
    try {
      const ask = (headers: Record<string, string>) =>
        worker.fetch(new Request('https://a.example/', { headers }), { KEYS_SERVER: server.url, KEYS_TOKEN: token });
      assert.equal((await ask({})).status, 401);
      assert.deepEqual(await (await ask({ authorization: `Bearer ${key}` })).json(), { by: 'Visitor' });
    } finally {
      await server.stop();
    }
  });

  it('begin with what the package.json of a host needs', () => {
    const short = JSON.parse(block('"plugins"', 'json', ENTRY)) as object;
    const whole = JSON.parse(block('"plugins"', 'json', 'docs/library/cli.md')) as object;
    assert.partialDeepStrictEqual(whole, short);
  });

  it('give secrets of a host another prefix', async () => {
    const chosen = JSON.parse(block('"prefix"', 'json', 'docs/library/cli.md')) as object;
    const set = (text: string) => JSON.stringify({ ...(JSON.parse(text) as object), ...chosen });
    const { stdout } = await withFile(join(host.folder, 'package.json'), set, () =>
      host.cli(['apikey', 'create', '--name', 'Prefixed', '--roles', 'GUEST']),
    );
    assert.match(stdout, /^acme_/);
  });

  it('choose features in a program', () => {
    writeFileSync(join(host.folder, 'features.js'), block('chooseFeatures(', 'js', 'docs/library/features.md'));
    const file = join(host.folder, 'chosen.mjs');
    writeFileSync(
      file,
      `import './features.js';
      import { createApp, OPERATOR, openKeys } from 'svc-api';
      const keys = await openKeys({ database: ':memory:' });
      const { key } = await keys.create({ name: 'A', roles: ['ADMIN'] }, { actor: OPERATOR });
      const app = await createApp({ keys });
      const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' };
      const body = JSON.stringify({ query: '{ __schema { queryType { fields { name } } } }' });
      const { data } = await (await app.request('/graphql', { method: 'POST', headers, body })).json();
      console.log(data.__schema.queryType.fields.map(({ name }) => name).join(' '));
      await keys.close();`,
    );
    const shown = execFileSync(process.execPath, [file], { cwd: host.folder, env: hostEnv(), encoding: 'utf8' });
    const fields = shown.trim().split(' ');
    assert.deepEqual(
      ['consentRequests', 'edges'].map((name) => fields.includes(name)),
      [true, false],
    );
  });

  it('open the store with resources and actions of its own, and check a request', async () => {
    const file = join(host.folder, 'articles.mjs');
    writeFileSync(
      file,
      `${block("resources: ['ARTICLES']", 'js', 'docs/library/opening.md')}
      import { OPERATOR } from 'svc-api';
      const permission = 'ARTICLES:PUBLISH';
      const { key } = await keys.create({ name: 'Publisher', permissions: [permission] }, { actor: OPERATOR });
      const handle = async (request) => {
        ${block('await keys.check(request', 'js', 'docs/library/checking.md')}
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

  it('choose the features of the page, and have no commands of others', async () => {
    const file = join(host.folder, 'package.json');
    const before = readFileSync(file, 'utf8');
    const chosen = JSON.parse(block('"features"', 'json', 'docs/library/features.md')) as object;
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(before) as object), ...chosen }));
    try {
      assert.equal((await host.cli(['apikey', 'apply', '--help'])).code, 0);
      assert.notEqual((await host.cli(['apikey', 'scan', '--help'])).code, 0);
    } finally {
      writeFileSync(file, before);
    }
  });

  /** Runs a program of a page on a free port until the work is done. */
  async function whileServing(name: string, program: string, shown: string, work: (url: string) => Promise<void>) {
    const port = await freePort();
    const file = join(host.folder, name);
    writeFileSync(file, program.replace(shown, String(port)));
    const child = spawn(process.execPath, [file], {
      cwd: host.folder,
      env: hostEnv({ XDG_DATA_HOME: join(host.folder, 'home') }),
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    try {
      const url = `http://127.0.0.1:${port}`;
      await until(() => fetch(url).then(Boolean, () => child.exitCode !== null));
      await work(url);
    } finally {
      child.kill();
    }
  }

  after(() => {
    const pages = [ENTRY, ...globSync('docs/library/*.md', { cwd: ROOT })];
    const left = pages
      .flatMap((page) => LANGUAGES.flatMap((language) => blocksOf(page, language)))
      .filter((each) => !used.has(each));
    assert.deepEqual(left, [], 'blocks that nothing runs');
  });
});
