import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataFolder } from '../support/plugins.ts';
import { finished, ROOT, runCliWithInput, startCli } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

type Json = Record<string, unknown>;

const FEATURE = `{
  name: 'acme-deploy',
  operations: {
    approveDeploy: {
      root: 'Mutation',
      needs: 'DOCKER:UPDATE_ANY',
      does: 'Approves a deploy.',
      async run(keys, { key, deploy }, actor) {
        const { id } = await keys.findByName(key, actor);
        const { after } = await keys.update(id, { description: deploy }, actor);
        return { key: after.name, deploy, by: actor.apiKey?.name ?? null };
      },
    },
    deploys: {
      root: 'Query',
      needs: 'DOCKER:READ_ANY',
      does: 'Deploys that were approved.',
      run: async (keys, { first }, actor) => (await keys.list({ first }, actor)).keys.flatMap(({ description }) => description ?? []),
    },
  },
  schema: () => import('./schema.js'),
  remote: () => import('./remote.js'),
}`;

const SCHEMA = `export const typeDefs = \`
  extend type Query { deploys("How many." first: Int = 10): [String!] @cost(weight: 3) @listSize(assumedSize: 500, slicingArguments: ["first"]) }
  extend type Mutation { approveDeploy("The key." key: String!, "The deploy." deploy: String!): Approval @cost(weight: 40) }
  "An approved deploy."
  type Approval {
    "The key that deploys."
    key: String!
    "Which deploy."
    deploy: String!
    "The key that approved it."
    by: String
    "In words."
    text: String!
  }
\`;
export const resolvers = { Approval: { text: ({ key, deploy }) => key + ' deploys ' + deploy } };
`;

const FILES = {
  'schema.js': SCHEMA,
  'remote.js': `export const approveDeploy = async (server, input) => {
    const document = 'mutation ($key: String!, $deploy: String!) { approveDeploy(key: $key, deploy: $deploy) { key deploy by } }';
    return (await server.ask(document, input)).approveDeploy;
  };
`,
  'deploy.js': `export const feature = ${FEATURE};\n`,
  'commands/deploy.js': `import { Args, Command } from '@oclif/core';
    import { clientFlags, withClient } from 'svc-api/feature';
    import { feature } from '../deploy.js';
    export default class Deploy extends Command {
      static enableJsonFlag = true;
      static args = { key: Args.string({ required: true }), deploy: Args.string({ required: true }) };
      static flags = clientFlags;
      async run() {
        const { args, flags } = await this.parse(Deploy);
        return withClient(this.config, flags, (client) => client.of(feature).approveDeploy(args));
      }
    }
`,
};

/** The result of the hook: the feature of the module that the command imports, too. */
const RESULT = `(await import('./deploy.js')).feature`;

describe('an operation of a plugin', () => {
  let data: DataFolder;
  let database: string;
  beforeEach(async () => {
    data = new DataFolder();
    data.install('acme-deploy', RESULT, undefined, {}, FILES);
    database = join(tempFolder(), 'keys.sqlite');
    await create('CI', '--permissions', 'DOCKER:READ_ANY');
  });

  const json = async (args: readonly string[], { env = {}, code = 0 } = {}): Promise<Json> => {
    const place = 'SVC_API_SERVER' in env ? {} : { SVC_API_DATABASE: database };
    const result = await runCliWithInput('', [...args, '--json'], { env: { ...data.env, ...place, ...env } });
    assert.equal(result.code, code, `${args.join(' ')}: ${result.stdout}${result.stderr}`);
    return JSON.parse(result.stdout) as Json;
  };
  const create = (name: string, ...flags: string[]) => json(['apikey', 'create', '--name', name, ...flags]);

  it('is done by its command, on a store and on a server', async () => {
    assert.deepEqual(await json(['deploy', 'CI', 'v1']), { key: 'CI', deploy: 'v1', by: null });
    assert.equal((await json(['apikey', 'show', 'CI']))['description'], 'v1');
    const grants = ['--permissions', 'DOCKER:UPDATE_ANY,API_KEY:READ_ANY,API_KEY:UPDATE_ANY,DOCKER:READ_ANY'];
    const { key } = await create('Admin', ...grants);
    const { key: reader } = await create('Reader', '--permissions', 'DOCKER:READ_ANY');
    const serve = await startServe(database, ['--port', '0'], data.env);
    try {
      const on = (secret: unknown) => ({ SVC_API_SERVER: serve.url, SVC_API_KEY: secret as string });
      const done = await json(['deploy', 'CI', 'v2'], { env: on(key) });
      assert.deepEqual(done, { key: 'CI', deploy: 'v2', by: 'Admin' });
      assert.equal((await json(['apikey', 'show', 'CI']))['description'], 'v2');
      const refused = await json(['deploy', 'CI', 'v3'], { env: on(reader), code: 1 });
      assert.equal((refused['error'] as Json)['code'], 'FORBIDDEN');
    } finally {
      await serve.stop();
    }
  });

  it('is in GraphQL with its description, permission and cost', async () => {
    const { key } = await create('Admin', '--roles', 'ADMIN');
    const { key: reader } = await create('Reader', '--permissions', 'DOCKER:READ_ANY,API_KEY:READ_ANY');
    const serve = await startServe(database, ['--port', '0'], data.env);
    try {
      const ask = async (secret: unknown, document: string) =>
        (await query(serve.url, secret as string, document)).body;
      const approve = 'mutation { approveDeploy(key: "CI", deploy: "v1") { text by } }';
      assert.deepEqual((await ask(key, approve)).data, { approveDeploy: { text: 'CI deploys v1', by: 'Admin' } });
      assert.deepEqual((await ask(reader, '{ deploys }')).data, { deploys: ['v1'] });
      assert.equal((await ask(reader, approve)).errors?.[0]?.extensions['code'], 'FORBIDDEN');
      const { data: shown } = await ask(key, '{ __type(name: "Mutation") { fields { name description } } }');
      const { fields } = (shown as { __type: { fields: Json[] } }).__type;
      assert.ok(
        fields.some(({ name, description }) => name === 'approveDeploy' && description === 'Approves a deploy.'),
      );
      const costly = `{ ${Array.from({ length: 30 }, (_, index) => `a${index}: deploys(first: 500)`).join(' ')} }`;
      assert.match((await ask(reader, costly)).errors?.[0]?.message ?? '', /cost/);
    } finally {
      await serve.stop();
    }
  });

  it('is done by a program as the given actor', async () => {
    const folder = tempFolder();
    for (const [path, text] of Object.entries({
      ...FILES,
      'package.json': '{ "type": "module" }',
      'features.js': `import { addFeatures } from '${ROOT}/dist/plugin.js';
        import { feature } from './deploy.js';
        addFeatures(feature);`,
      'program.js': `import './features.js';
        import { OPERATOR, openKeys } from '${ROOT}/dist/index.js';
        const keys = await openKeys({ database: ':memory:' });
        const { key: secret } = await keys.create({ name: 'CI', permissions: ['DOCKER:READ_ANY'] }, { actor: OPERATOR });
        const input = { key: 'CI', deploy: 'v1' };
        const codeOf = (work) => work.then(() => 'done', ({ code, message }) => [code, message]);
        const { principal } = await keys.verify(secret);
        console.log(JSON.stringify([
          await keys.run('approveDeploy', input, { actor: OPERATOR }),
          (await codeOf(keys.run('approveDeploy', input, { actor: principal })))[0],
          await codeOf(keys.run('approveDeploi', input, { actor: OPERATOR })),
          (await codeOf(keys.run('createApiKey', input, { actor: OPERATOR })))[0],
          (await codeOf(keys.run('approveDeploy', input)))[0],
        ]));
        await keys.close();`,
    }))
      if (!path.startsWith('commands/')) writeFileSync(join(folder, path), text);
    const { code, stdout, stderr } = await finished(spawn(process.execPath, [join(folder, 'program.js')]));
    assert.equal(code, 0, stderr);
    const [done, refused, unknown, ...invalid] = JSON.parse(stdout) as unknown[];
    assert.deepEqual([done, refused], [{ key: 'CI', deploy: 'v1', by: null }, 'FORBIDDEN']);
    assert.match(String(unknown), /OPTION_INVALID.*"approveDeploi".*Did you mean approveDeploy/);
    assert.deepEqual(invalid, ['OPTION_INVALID', 'OPTION_INVALID']);
  });

  it('that does not fit is refused by name by each command on keys', async () => {
    for (const [result, ...expected] of [
      [FEATURE.replace("'acme-deploy'", "'other'"), '"approveDeploy"'],
      [FEATURE.replace("'acme-deploy'", "'other'").replace('approveDeploy', 'createApiKey'), '"createApiKey"'],
      [FEATURE.replace("'acme-deploy'", "'other'").replace('approveDeploy', 'edges'), '"edges"'],
      [FEATURE.replace("'acme-deploy'", "'other'").replace('approveDeploy', 'Approve'), '"Approve"'],
      [FEATURE.replace("'acme-deploy'", "'other'").replace("root: 'Mutation'", "rot: 'Mutation'"), 'rot'],
      [FEATURE.replace("'acme-deploy'", "'other'").replace("'DOCKER:UPDATE_ANY'", "'docker'"), 'permission'],
      [FEATURE.replace("'acme-deploy'", "'other'").replace('schema:', 'remote:'), 'schema'],
    ] as const) {
      data.install('other', result, undefined, {}, FILES);
      const { error, code } = await json(['apikey', 'show', 'CI'], { code: 1 });
      assert.equal(code, 'FEATURE_INVALID');
      for (const text of ['other', ...expected]) assert.ok((error as string).includes(text), error as string);
    }
  });

  it('whose schema does not fit is refused by name when the server starts', async () => {
    const own = (typeDefs: string, operation = 'ping') => [
      `{ name: 'other', operations: { ${operation}: { root: 'Query', needs: 'DOCKER:READ_ANY', does: 'Answers.', run: () => 1 } },
         schema: async () => ({ typeDefs: ${JSON.stringify(typeDefs)} }) }`,
    ];
    const withResolvers = (resolvers: string) =>
      own('extend type Query { ping: Int }')[0]!.replace('({ typeDefs', `({ resolvers: ${resolvers}, typeDefs`);
    for (const [result, expected] of [
      [...own('extend type Query { ping: Int } type ApiKey { id: ID }'), 'ApiKey'],
      [...own('extend type Query { ping: Int } type Approval { id: ID }'), 'Approval'],
      [...own('extend type Query { ping: Int edges: Int }'), 'Query.edges'],
      [...own('extend type Query { pong: Int }'), 'Query.pong'],
      [...own('type Pong { id: ID }'), '"Query.ping"'],
      [...own('extend type Query { ping: Int @requires(resource: DOCKER, action: READ_ANY) }'), '@requires'],
      [...own('extend type Query { ping: Unknown }'), 'Unknown'],
      [own('extend type Query { ping: Int }')[0]!.replace('DOCKER:READ_ANY', 'DOKKER:READ_ANY'), 'DOKKER:READ_ANY'],
      [`{ name: 'other', schema: async () => {} }`, '"schema"'],
      [withResolvers('null'), '"resolvers"'],
      [withResolvers('() => undefined'), '"resolvers"'],
      [withResolvers(`() => { throw new Error('no address'); }`), 'no address'],
    ] as const) {
      data.install('other', result);
      const child = startCli(['serve', '--port', '0'], { env: { ...data.env, SVC_API_DATABASE: database } });
      const { code, stderr } = await finished(child);
      assert.notEqual(code, 0);
      assert.match(stderr, /FEATURE_INVALID/);
      for (const text of ['other', expected]) assert.ok(stderr.includes(text), stderr);
    }
  });
});
