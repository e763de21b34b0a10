import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfig } from '../../src/config/load-config.ts';
import { createApp, listen, openKeys, type Permission } from '../../src/index.ts';
import { OPERATOR } from '../../src/keys/authorization/index.ts';
import { testCli } from '../support/cli.ts';
import { startConsoleService, visitorWith } from '../features/console/support/console.ts';
import { query } from '../support/server.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const OWN = { resources: ['WIKI'], actions: ['PUBLISH', 'APPROVE_ANY'] };
// Programs declare actions in TypeScript globally, which would affect the other tests.
const PUBLISH = 'WIKI:PUBLISH' as string as Permission;
const FILE = 'resources: [WIKI]\nactions: [PUBLISH, APPROVE_ANY]\n';

describe('actions of an installation', () => {
  const commands = (text = FILE) => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, text, { mode: 0o600 });
    const cli = testCli();
    return { run: (...args: string[]) => cli.run(args, { env: { SVC_API_CONFIG: config } }) };
  };

  it('are granted and looked up on the command line', async () => {
    const { run } = commands();
    const created = await run('apikey', 'create', 'Press', '--permissions', 'wiki:publish,WIKI:APPROVE_ANY', '--json');
    assert.equal(created.code, 0, created.stderr);
    const shown = JSON.parse((await run('apikey', 'show', 'Press', '--json')).stdout) as { permissions: string[] };
    assert.deepEqual(shown.permissions, ['WIKI:PUBLISH', 'WIKI:APPROVE_ANY']);
    const updated = await run('apikey', 'update', 'Press', '--permissions', 'WIKI:PUBLISH');
    assert.equal(updated.code, 0, updated.stderr);
    assert.equal((await run('apikey', 'explain', 'Press', 'wiki:publish')).code, 0);
    assert.equal((await run('apikey', 'explain', 'Press', 'WIKI:APPROVE_OWN')).code, 4);
    const misspelt = await run('apikey', 'create', 'Other', '--permissions', 'WIKI:PUBLSH');
    assert.equal(misspelt.code, 2);
    assert.match(misspelt.stderr, /PUBLISH/);
  });

  it('are refused where the file misspells them', async () => {
    for (const [line, words] of [
      ['actions: [READ_ANY]', /"READ_ANY" is a built-in action/],
      ['actions: [READ]', /READ_ANY and READ_OWN/],
      ['actions: [publish]', /"publish" is not the name of an action/],
      ['actions: [PUBLISH, PUBLISH]', /declared more than once/],
      ['action: [PUBLISH]', /actions/],
      ['roles: { EDITOR: [DOCKER:PUBLISH] }', /PUBLISH/],
    ] as const)
      await assert.rejects(parseConfig({ path: 'svc-api.yaml', text: `${line}\n` }), words);
    const { roles, routes } = await parseConfig({
      path: 'svc-api.yaml',
      text: `${FILE}roles: { EDITOR: [WIKI:PUBLISH] }\nroutes:\n  - { host: '*', path: /publish, methods: [POST], allow: WIKI:PUBLISH }\n`,
    });
    assert.deepEqual(roles, { EDITOR: ['WIKI:PUBLISH'] });
    assert.equal(routes.length, 1);
  });

  it('are checked by the library and enforced by @requires', async () => {
    const keys = await openKeys({ database: tempStore(), ...OWN });
    const extension = {
      typeDefs: 'extend type Query { drafts: Int @requires(resource: WIKI, action: PUBLISH) }',
      resolvers: { Query: { drafts: () => 3 } },
    };
    const server = await listen({
      app: await createApp({ keys, extensions: [extension] }),
      host: '127.0.0.1',
      port: 0,
    });
    try {
      const secretOf = async (name: string, permissions: string[]) =>
        (await keys.create({ name, permissions }, { actor: 'operator' })).key;
      const publisher = await secretOf('Publisher', ['WIKI:PUBLISH', 'PERMISSION:READ_ANY', 'ME:READ_OWN']);
      const reader = await secretOf('Reader', ['WIKI:READ_ANY']);
      const { body } = await query(
        server.url,
        publisher,
        '{ drafts permissions { actions } me { permissions { resource actions } } }',
      );
      const { data } = body as {
        data: { drafts: number; permissions: { actions: string[] }; me: { permissions: { actions: string[] }[] } };
      };
      assert.equal(data.drafts, 3);
      assert.deepEqual(data.permissions.actions.slice(8), ['PUBLISH', 'APPROVE_ANY', 'APPROVE_OWN']);
      assert.deepEqual(data.me.permissions[0]!.actions, ['PUBLISH']);
      assert.match(JSON.stringify((await query(server.url, reader, '{ drafts }')).body), /FORBIDDEN/);

      const create = `mutation { createApiKey(input: { name: "CI", permissions: [{ resource: WIKI, actions: [PUBLISH] }] }) { apiKey { name } } }`;
      const admin = (await keys.create({ name: 'Admin', roles: ['ADMIN'] }, { actor: 'operator' })).key;
      assert.match(JSON.stringify((await query(server.url, admin, create)).body), /"name":"CI"/);

      const actions = await query(
        server.url,
        admin,
        '{ __type(name: "AuthAction") { enumValues { name description } } }',
      );
      const { enumValues } = (actions.body as { data: { __type: { enumValues: Record<string, string>[] } } }).data
        .__type;
      const described = enumValues.filter(({ name }) => /^(?:PUBLISH|APPROVE|DELETE)/.test(name!));
      assert.deepEqual(Object.fromEntries(described.map(({ name, description }) => [name, description])), {
        PUBLISH: 'Publish.',
        APPROVE_ANY: 'Approve any object.',
        APPROVE_OWN: "Approve the key's own objects.",
        DELETE_ANY: 'Delete any object.',
        DELETE_OWN: "Delete the key's own objects.",
      });

      const remote = { SVC_API_SERVER: server.url, SVC_API_KEY: admin, SVC_API_DATABASE: undefined };
      const cli = testCli();
      const made = await cli.run(['apikey', 'create', 'Far', '--permissions', 'wiki:approve_own'], { env: remote });
      assert.equal(made.code, 0, made.stderr);

      const checked = await keys.check({ secret: publisher }, { permission: PUBLISH });
      assert.equal(checked.ok, true);
      const refused = await keys.check({ secret: reader }, { permission: PUBLISH });
      assert.equal(refused.ok, false);
    } finally {
      await server.stop(0);
      await keys.close();
    }
  });

  it('are in the forms and tables of the console', async () => {
    const service = await startConsoleService(OWN);
    try {
      const { visitor } = await visitorWith(service, { name: 'Ada', roles: ['ADMIN'] });
      const { html } = await visitor.open('keys/new');
      assert.ok(html.includes('name="permission" value="WIKI:PUBLISH"'));
      assert.ok(html.includes('value="READ_ANY CREATE_ANY UPDATE_ANY DELETE_ANY APPROVE_ANY PUBLISH"'));
      await visitor.submit('keys/new', { name: 'Press', permission: ['WIKI:PUBLISH'], step: 'preview' });
      const created = await visitor.submit('keys/new', { step: 'create' });
      assert.equal(created.status, 200);
      const key = (await service.keys.findByName('Press', OPERATOR))!;
      assert.deepEqual(key.permissions, ['WIKI:PUBLISH']);
      const page = await visitor.open(`keys/${key.id}`);
      assert.ok(page.html.includes('title="WIKI:PUBLISH: granted'));
      assert.ok(page.text.includes('Publishes wiki'));
    } finally {
      await service.stop();
    }
  });
});
