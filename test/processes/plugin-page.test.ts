import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { blocksOf, blockWith } from '../support/pages.ts';
import { DataFolder } from '../support/plugins.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv, finished, ROOT, runCliWithInput } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** The pages about plugins, except the one that test/pages/walks.test.ts follows. */
const PAGES = globSync(['docs/plugins.md', 'docs/plugins/*.md'], { cwd: ROOT, exclude: ['**/writing.md'] });
const BLOCKS = PAGES.flatMap((page) => blocksOf(page, 'js'));
const VALIBOT = JSON.stringify(pathToFileURL(join(ROOT, 'node_modules/valibot/dist/index.mjs')).href);

describe('an example of the pages about plugins', () => {
  const tried = new Set<string>();
  const database = join(tempFolder(), 'keys.sqlite');
  const config = join(tempFolder(), 'svc-api.yaml');
  let data: DataFolder;
  beforeEach(() => {
    data = new DataFolder();
    writeFileSync(config, '');
  });

  const block = (part: string) => {
    const [found, ...others] = BLOCKS.filter((each) => each.includes(part));
    assert.ok(found !== undefined && others.length === 0, `one block with ${part}`);
    tried.add(found);
    return found;
  };
  /** The block that starts with the path of its file. */
  const fileAt = (path: string) => block(`// ${path}\n`);
  /** Installs a plugin with the hook of a block. */
  const example = (name: string, part = `=> ({\n  name: '${name}'`, change = (given: string) => given) => {
    const files = { 'example.js': change(block(part)) };
    data.install(name, `await (await import('./example.js')).default()`, undefined, {}, files);
  };
  const env = () => ({ ...data.env, SVC_API_CONFIG: config });
  const run = async (words: string, { code = 0, more = {} }: { code?: number; more?: NodeJS.ProcessEnv } = {}) => {
    const place = 'SVC_API_SERVER' in more ? more : { SVC_API_DATABASE: database };
    const result = await runCliWithInput('', words.split(' '), { env: { ...env(), ...place } });
    assert.equal(result.code, code, `${words}: ${result.stdout}${result.stderr}`);
    return result.stdout;
  };
  const cli = async (words: string, code = 0, more: NodeJS.ProcessEnv = {}) =>
    JSON.parse(await run(`${words} --json`, { code, more })) as Record<string, unknown>;
  /** Runs a program with svc-api as a dependency. */
  const program = async (files: Readonly<Record<string, string>>) => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(ROOT, join(folder, 'node_modules/svc-api'));
    for (const [path, content] of Object.entries({ 'package.json': '{ "type": "module" }', ...files })) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
    const { code, stdout, stderr } = await finished(
      spawn(process.execPath, [join(folder, 'program.js')], { env: cleanEnv() }),
    );
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as unknown;
  };

  it('adds a field', async () => {
    data.install('svc-api-cost', `{ name: 'svc-api-cost', ${block('costCentre:')} }`);
    await cli('apikey create --name A --roles GUEST --cost-centre X1 --owner Ada');
    assert.equal((await cli('apikey show A'))['costCentre'], 'X1');
    const { keys } = await cli('apikey list --cost-centre x1');
    assert.equal((keys as object[]).length, 1);
  });

  it('is for a range of versions', async () => {
    const manifest = JSON.parse(blockWith('peerDependencies', 'docs/plugins/writing.md', 'json')) as object;
    data.install('svc-api-team', `{ name: 'svc-api-team' }`, undefined, manifest);
    await cli('apikey list');
  });

  it('adds resources, a section of the configuration and metrics', async () => {
    const members = [block("resources: ['APPROVAL'"), block('config: {\n').replace("'valibot'", VALIBOT)].join('');
    const metrics = block('const metrics = [');
    data.install(
      'svc-api-approval',
      `(() => { ${metrics} return { name: 'svc-api-approval', metrics, ${members} }; })()`,
    );
    await cli('apikey create --name F --permissions APPROVAL:READ_ANY,VAULT:READ_ANY --owner Ada');
    const { effectivePermissions } = await cli('apikey create --name G --roles VIEWER --owner Ada --dry-run');
    const ofViewers = ['APPROVAL:READ_ANY', 'VAULT:READ_ANY'].map((each) =>
      (effectivePermissions as string[]).includes(each),
    );
    assert.deepEqual(ofViewers, [true, false]);
    writeFileSync(config, 'approval: { approvers: ada, wiat: 5 }\n');
    const { error } = await cli('apikey show F', 2);
    for (const pattern of [/1:24: "approval.approvers": /, /1:29: "approval.wiat": /])
      assert.match(error as string, pattern);
    writeFileSync(config, 'approval: { approvers: [ada] }\n');
    const port = await freePort();
    const serve = await startServe(database, ['--port', '0', '--metrics-port', `${port}`], env());
    try {
      const exported = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      assert.match(exported, /^svc_api_approval_approved_total 0$/m);
    } finally {
      await serve.stop();
    }
  });

  it('adds a step when keys change, which lets keys that broke the rule before be disabled', async () => {
    await cli('apikey create --name Ownerless --roles GUEST');
    example('svc-api-owned');
    await cli('apikey disable Ownerless');
    const { code, error } = await cli('apikey create --name B --roles GUEST', 1);
    assert.equal(code, 'FEATURE_FAILED');
    assert.match(error as string, /"B" has no owner\./);
    await cli('apikey create --name B --roles GUEST --owner Ada');
  });

  it('adds a table, which has a row for each new key, also for one that replaces itself', async () => {
    example('svc-api-visits');
    await cli('apikey create --name E --roles GUEST --owner Ada');
    const { key } = await cli('apikey create --name V --roles ADMIN --owner Ada');
    const serve = await startServe(database, ['--port', '0'], env());
    const headersOf = (secret: string) => ({ authorization: `Bearer ${secret}`, 'content-type': 'application/json' });
    const counts = async (secret: string) => {
      const answer = await fetch(`${serve.url}/visits`, { headers: headersOf(secret) });
      return ((await answer.json()) as { visits: number }[]).map(({ visits }) => visits);
    };
    try {
      assert.deepEqual(await counts(key as string), [0, 0]);
      const query =
        'mutation { createApiKey(input: { name: "V", roles: [ADMIN], owner: "Ada", overwrite: true }) { key } }';
      const replacing = { method: 'POST', headers: headersOf(key as string), body: JSON.stringify({ query }) };
      const { data } = (await (await fetch(`${serve.url}/graphql`, replacing)).json()) as {
        data: { createApiKey: { key: string } };
      };
      assert.deepEqual(await counts(data.createApiKey.key), [0, 0]);
    } finally {
      await serve.stop();
    }
  });

  it('has a rule for a change of its own, which its page asks', async () => {
    const errors = `errors: { APPROVAL_REFUSED: { meaning: 'Refused.', causes: ['its own'], remedy: 'Ask another.' } }`;
    const routes = `routes: async (app, { bearer, keys }) => {
      app.get('/rules', bearer('/rules', 'API_KEY:READ_ANY').auth, async (context) => {
        const principal = context.get('principal');
        const [changes] = await keys.permittedChanges.possibleChanges([principal.apiKey], principal);
        return context.json(changes.find(({ change }) => change === 'approve').refusal.code);
      });
    }`;
    data.install('svc-api-rules', `{ name: 'svc-api-rules', ${errors}, ${block('approve: async (view')} ${routes} }`);
    const { key } = await cli('apikey create --name R --roles ADMIN --owner Ada');
    const serve = await startServe(database, ['--port', '0'], env());
    try {
      const answer = await fetch(`${serve.url}/rules`, { headers: { authorization: `Bearer ${key as string}` } });
      assert.equal(await answer.json(), 'APPROVAL_REFUSED');
    } finally {
      await serve.stop();
    }
  });

  it('adds an error code', async () => {
    const step = `onKeys: { changed: async () => { throw Object.assign(new Error('No.'), { code: 'OWNER_MISSING' }); } }`;
    data.install('svc-api-owners', `{ name: 'svc-api-owners', ${block('OWNER_MISSING')} ${step} }`);
    assert.equal((await cli('apikey create --name D --roles GUEST', 2))['code'], 'OWNER_MISSING');
  });

  it('adds an operation, which its command does on a store and on a server', async () => {
    const paths = ['feature.js', 'deploy.js', 'schema.js', 'remote.js', 'commands/deploy/approve.js'];
    const files = Object.fromEntries(paths.map((path) => [path, fileAt(path)]));
    const manifest = JSON.parse(blockWith('"commands"', 'docs/plugins/operations.md', 'json')) as object;
    data.install('svc-api-deploy', '', undefined, manifest, files);
    assert.deepEqual(await cli('deploy approve 7'), { id: '7', by: null });
    const { key } = await cli('apikey create --name H --permissions SERVICES:UPDATE_ANY --owner Ada');
    const serve = await startServe(database, ['--port', '0'], env());
    try {
      const server = { SVC_API_SERVER: serve.url, SVC_API_KEY: key as string };
      assert.deepEqual(await cli('deploy approve 7', 0, server), { id: '7', by: 'H' });
    } finally {
      await serve.stop();
    }
  });

  it('has keys, with methods that take the actor', async () => {
    const run = `async (keys, { name }, actor) => {
      const input = { name: name + ' two', roles: ['GUEST'], owner: 'Ada' };
      const { key, apiKey } = await keys.create(input, actor);
      const changed = await keys.update(apiKey.id, { description: 'New' }, actor);
      const disabled = await keys.setEnabled(apiKey.id, false, actor);
      const found = [await keys.findById(apiKey.id, actor), await keys.findByName(input.name, actor)];
      const { keys: listed } = await keys.list({ search: input.name }, actor);
      await keys.setEnabled(apiKey.id, true, actor);
      const rotated = await keys.rotate(apiKey.id, {}, actor);
      const [deleted] = await keys.delete([apiKey.id], actor);
      return {
        ids: [...found, ...listed, deleted].map((each) => each.id === apiKey.id),
        changes: [changed.before.description, changed.after.description, disabled.after.disabledAt !== null],
        secrets: new Set([key, rotated.key]).size,
        section: keys.catalog.added.other ?? null,
        rest: (await keys.findByName(input.name, actor)) ?? null,
      };
    }`;
    const operation = `{ root: 'Mutation', needs: 'SERVICES:UPDATE_ANY', does: 'Tries keys.', run: ${run} }`;
    const command = fileAt('commands/deploy/approve.js')
      .replaceAll('approveDeploy', 'tryKeys')
      .replaceAll('id:', 'name:');
    const files = {
      'deploy.js': `export const feature = { name: 'svc-api-deploy', operations: { tryKeys: ${operation} },
        schema: async () => ({ typeDefs: 'extend type Mutation { "Tries." tryKeys("Name." name: String!): Boolean }' }) };`,
      'commands/deploy/approve.js': command,
    };
    data.install('svc-api-deploy', `(await import('./deploy.js')).feature`, undefined, {}, files);
    assert.deepEqual(await cli('deploy approve K'), {
      ids: [true, true, true, true],
      changes: [null, 'New', true],
      secrets: 2,
      section: null,
      rest: null,
    });
  });

  it('adds work beside requests', async () => {
    example('svc-api-heartbeat', undefined, (given) => given.replace('60_000', '5'));
    const own = join(tempFolder(), 'keys.sqlite');
    const serve = await startServe(own, ['--port', '0'], { ...env(), LOG_LEVEL: 'warn' });
    try {
      renameSync(own, `${own}.gone`);
      await until(() => serve.log.includes('no heartbeat'));
    } finally {
      await serve.stop();
    }
  });

  it('adds an endpoint', async () => {
    example('svc-api-whoami');
    const { key } = await cli('apikey create --name C --roles ADMIN --owner Ada');
    const serve = await startServe(database, ['--port', '0'], env());
    try {
      const answer = await fetch(`${serve.url}/whoami`, { headers: { authorization: `Bearer ${key as string}` } });
      assert.deepEqual(await answer.json(), { name: 'C' });
    } finally {
      await serve.stop();
    }
  });

  it('adds a check of doctor', async () => {
    example('svc-api-approval', 'checks: [check]');
    await cli('apikey create --name K --roles GUEST --owner Ada');
    assert.match(await run('doctor'), /Nobody approves\./);
  });

  it('reads keys in a check, page by page', async () => {
    const check = `{
      name: 'SVC_API_PAGES',
      run: async ({ store: { repository } }) => {
        const names = [];
        for (let after; ; ) {
          const [key] = await repository.list({ limit: 1, after });
          if (!key) break;
          const found = [await repository.findById(key.id), await repository.findByName(key.name)];
          if (found.every(({ id }) => id === key.id)) names.push(key.name);
          after = key;
        }
        return [{ status: 'ok', message: names.slice(-2).join(' before ') }];
      },
    }`;
    data.install('svc-api-pages', `{ name: 'svc-api-pages', checks: [${check}] }`);
    for (const name of ['One', 'Two']) await cli(`apikey create --name ${name} --roles GUEST --owner Ada`);
    assert.match(await run('doctor'), /One before Two/);
  });

  it('adds a channel of notices', async () => {
    example('svc-api-ntfy', "name: 'svc-api-ntfy'");
    const received: unknown[] = [];
    const ntfy = createServer(async (request, response) => {
      received.push([request.headers['title'], (JSON.parse(await text(request)) as { type: string }).type]);
      response.end();
    }).listen(0, '127.0.0.1');
    await once(ntfy, 'listening');
    try {
      const url = `http://127.0.0.1:${(ntfy.address() as AddressInfo).port}/keys`;
      writeFileSync(config, `notices: { channel: ntfy, url: "${url}" }\n`);
      assert.equal((await cli('apikey notices test'))['status'], null);
      assert.deepEqual(received, [['test', 'test']]);
    } finally {
      ntfy.close();
    }
  });

  it('adds a command under a heading', async () => {
    const files = { 'commands/apikey/teams.js': fileAt('commands/apikey/teams.js') };
    data.install('svc-api-teams', `{ name: 'svc-api-teams' }`, undefined, {}, files);
    assert.match(await run('apikey --help'), /^KEYS\n(?: {2}.*\n)* {2}apikey teams +List the teams that have keys\.$/m);
  });

  it('adds a field in a program', async () => {
    const team = await program({
      'features.js': fileAt('features.js'),
      'program.js': `${fileAt('program.js')}
        import { OPERATOR } from 'svc-api';
        const keys = await openKeys({ database: ':memory:' });
        const { apiKey } = await keys.create({ name: 'A', roles: ['GUEST'], team: 'Web' }, { actor: OPERATOR });
        console.log(JSON.stringify(apiKey.team));
        await keys.close();`,
    });
    assert.equal(team, 'Web');
  });

  it('adds the feature of a package in a program', async () => {
    const team = await program({
      'node_modules/svc-api-team/package.json': '{ "name": "svc-api-team", "type": "module" }',
      'node_modules/svc-api-team/feature.js': blocksOf('docs/plugins/writing.md', 'js')[0]!,
      'program.js': `${fileAt('with-package.js')}
        const { OPERATOR } = await import('svc-api');
        const keys = await openKeys({ database: ':memory:' });
        const { apiKey } = await keys.create({ name: 'A', roles: ['GUEST'], team: 'Web' }, { actor: OPERATOR });
        console.log(JSON.stringify(apiKey.team));
        await keys.close();`,
    });
    assert.equal(team, 'Web');
  });

  it('is tried, each of them', () =>
    assert.deepEqual(
      BLOCKS.filter((each) => !tried.has(each)),
      [],
    ));
});
