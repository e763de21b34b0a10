import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataFolder } from '../support/plugins.ts';
import { finished, ROOT, runCliWithInput, startCli } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

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

/** The hook's result: the same feature as in the command's module. */
const RESULT = `(await import('./deploy.js')).feature`;

const TABLE = 'plugin_acme_notes_notes';
const NOTES = `(() => {
  const port = { name: 'notes' };
  const settings = (keys) => keys.catalog.added.notes ?? null;
  return {
    name: 'acme-notes',
    errors: { NOTE_REFUSED: { status: 403, meaning: 'A note is refused.', causes: ['a'], remedy: 'B.' } },
    config: { sections: { notes: async () => ({ description: 'x', schema: { '~standard': { validate: (value) => ({ value }) } } }) } },
    store: async () => ({
      tables: { ${TABLE}: ['text'] },
      migrations: [{ name: 'notes', up: (db, { text }) =>
        db.schema.createTable('${TABLE}').addColumn('text', text, (column) => column.primaryKey().notNull()).execute() }],
      ports: [{
        port,
        read: ({ run }) => ({ list: () => run((db) => db.selectFrom('${TABLE}').selectAll().orderBy('text').execute()) }),
        write: ({ db }) => ({ add: (text) => db.insertInto('${TABLE}').values({ text }).execute() }),
      }],
    }),
    operations: {
      addNote: {
        root: 'Mutation',
        needs: 'DOCKER:UPDATE_ANY',
        does: 'Adds a note.',
        run: (keys, { text }, actor) => keys.write(async (transaction) => {
          await transaction.port(port).add(text);
          const { length } = await transaction.port(port).list();
          if (text === settings(keys)?.refused) throw Object.assign(new Error(text), { code: 'NOTE_REFUSED' });
          return [text, transaction.caller.apiKey?.name ?? null, String(length)];
        }, actor),
      },
      notes: {
        root: 'Query',
        needs: 'DOCKER:READ_ANY',
        does: 'Notes.',
        run: async (keys) => [settings(keys)?.refused ?? null, ...(await keys.port(port).list()).map(({ text }) => text)],
      },
    },
    schema: async () => ({ typeDefs: 'extend type Query { notes: [String] } extend type Mutation { addNote(text: String!): [String] }' }),
  };
})()`;

const NOTE_COMMANDS = Object.fromEntries(
  ['notes', 'addNote'].map((name) => [
    `commands/${name.toLowerCase()}.js`,
    `import { Args, Command } from '@oclif/core';
    import { clientFlags, withClient } from 'svc-api/feature';
    import { feature } from '../notes.js';
    export default class extends Command {
      static enableJsonFlag = true;
      static args = { text: Args.string() };
      static flags = clientFlags;
      async run() {
        const { args, flags } = await this.parse(this.constructor);
        return withClient(this.config, flags, (client) => client.of(feature).${name}(args));
      }
    }`,
  ]),
);

describe('an operation of a plugin that writes its tables', () => {
  it('writes all or nothing as its caller, and knows its section, at each door', async () => {
    const data = new DataFolder();
    const files = { ...NOTE_COMMANDS, 'notes.js': `export const feature = ${NOTES};\n` };
    data.install('acme-notes', `(await import('./notes.js')).feature`, undefined, {}, files);
    const folder = tempFolder();
    const config = join(folder, 'svc-api.yaml');
    const database = join(folder, 'keys.sqlite');
    const env = { ...data.env, SVC_API_DATABASE: database, SVC_API_CONFIG: config };
    const write = (text: string) => {
      writeFileSync(`${config}.new`, text);
      renameSync(`${config}.new`, config);
    };
    const json = async (args: readonly string[], code = 0) => {
      const result = await runCliWithInput('', [...args, '--json'], { env });
      assert.equal(result.code, code, `${args.join(' ')}: ${result.stdout}${result.stderr}`);
      return JSON.parse(result.stdout) as Json;
    };
    write('notes: { refused: a }\n');
    const { key } = await json([
      'apikey',
      'create',
      '--name',
      'CI',
      '--permissions',
      'DOCKER:UPDATE_ANY,DOCKER:READ_ANY',
    ]);
    assert.equal((await json(['addnote', 'a'], 1))['code'], 'NOTE_REFUSED');
    assert.deepEqual(await json(['notes']), ['a']);
    assert.deepEqual(await json(['addnote', 'b']), ['b', null, '1']);
    const serve = await startServe(database, ['--port', '0', '--config', config], env);
    try {
      const ask = async (document: string) => (await query(serve.url, key as string, document)).body;
      const codeOf = async (text: string) =>
        (await ask(`mutation { addNote(text: "${text}") }`)).errors?.[0]?.extensions['code'];
      assert.equal(await codeOf('a'), 'NOTE_REFUSED');
      assert.deepEqual((await ask('mutation { addNote(text: "c") }')).data, { addNote: ['c', 'CI', '2'] });
      write('notes: { refused: d }\n');
      serve.kill('SIGHUP');
      await until(async () => ((await ask('{ notes }')).data as { notes: string[] }).notes[0] === 'd');
      assert.equal(await codeOf('d'), 'NOTE_REFUSED');
      assert.deepEqual((await ask('{ notes }')).data, { notes: ['d', 'b', 'c'] });
    } finally {
      await serve.stop();
    }
  });

  it('knows its section in a program', async () => {
    const folder = tempFolder();
    for (const [path, text] of Object.entries({
      'package.json': '{ "type": "module" }',
      'features.js': `import { addFeatures } from '${ROOT}/dist/plugin.js';\naddFeatures(${NOTES});`,
      'program.js': `import './features.js';
        import { OPERATOR, openKeys } from '${ROOT}/dist/index.js';
        const keys = await openKeys({ database: ':memory:', added: { notes: { refused: 'a' } } });
        await keys.run('addNote', { text: 'b' }, { actor: OPERATOR });
        const notes = await keys.run('notes', {}, { actor: OPERATOR });
        const other = keys.withAdditions({ added: { notes: { refused: 'c' } } });
        console.log(JSON.stringify([notes, await other.run('notes', {}, { actor: OPERATOR })]));
        await keys.close();`,
    }))
      writeFileSync(join(folder, path), text);
    const { code, stdout, stderr } = await finished(spawn(process.execPath, [join(folder, 'program.js')]));
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), [
      ['a', 'b'],
      ['c', 'b'],
    ]);
  });
});

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
      assert.equal(refused['code'], 'FORBIDDEN');
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
      [...own('extend type Query { ping: Int } type Subscription { pings: Int }'), 'subscriptions'],
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
