import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Visitor } from '../features/console/support/console.ts';
import { readDirectly } from '../support/direct.ts';
import { DataFolder } from '../support/plugins.ts';
import { finished, ROOT, runCliWithInput, startCli } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { spawn } from 'node:child_process';

type Json = Record<string, unknown>;

const TEAM = `{ name: 'svc-api-team', fields: {
  team: { kind: 'line', max: 20, label: 'Team', help: 'Team of the key.', filter: true, asked: true },
  costCentre: {
    kind: 'number', integer: true, min: 1, max: 999, label: 'Cost centre', help: 'Cost centre, from 1 to 999.', removable: true,
  },
  risk: { kind: 'choice', values: ['LOW', 'MEDIUM', 'HIGH'], label: 'Risk', help: 'LOW, MEDIUM or HIGH.' },
  regions: { kind: 'list', max: 10, items: 3, label: 'Regions', help: 'Regions.', filter: true, removable: true },
} }`;
const SET = { team: 'Payments', costCentre: 42, risk: 'HIGH', regions: ['eu', 'us'] };
const FLAGS = '--team Payments --cost-centre 42 --risk HIGH --regions eu,us'.split(' ');

/** A plugin with these fields. */
const pluginOf = (name: string, fields: string) => `{ name: '${name}', fields: { ${fields} } }`;
const line = (more = '') => `{ kind: 'line', label: 'Team', help: 'Team of the key.'${more} }`;

describe('a plugin with fields of keys', () => {
  let data: DataFolder;
  let database: string;
  let onServer: NodeJS.ProcessEnv | undefined;
  beforeEach(async () => {
    data = new DataFolder();
    data.install('svc-api-team', TEAM);
    onServer = undefined;
    database = join(tempFolder(), 'keys.sqlite');
    await create('CI', ...FLAGS);
  });

  const cli = async (args: readonly string[], { input = '', code = 0 } = {}): Promise<string> => {
    const env = { ...data.env, ...(onServer ?? { SVC_API_DATABASE: database }) };
    const result = await runCliWithInput(input, args, { env });
    assert.equal(result.code, code, `${args.join(' ')}: ${result.stdout}${result.stderr}`);
    return result.stdout;
  };
  const json = async (args: readonly string[], options = {}) =>
    JSON.parse(await cli([...args, '--json'], options)) as Json;
  const create = (name: string, ...flags: string[]) =>
    json(['apikey', 'create', '--name', name, '--roles', 'GUEST', ...flags]);
  const fieldsOf = ({ team, costCentre, risk, regions }: Json) => ({ team, costCentre, risk, regions });
  const shown = async (name: string) => fieldsOf(await json(['apikey', 'show', name]));
  const listed = async (...flags: string[]) =>
    ((await json(['apikey', 'list', ...flags]))['keys'] as Json[]).map(({ name }) => name);
  const serveWith = async () => {
    const { key } = (await create('Admin', '--roles', 'ADMIN')) as { key: string };
    const serve = await startServe(database, ['--port', '0'], data.env);
    return { serve, key };
  };

  it('has flags, help, columns, filters and JSON in commands', async () => {
    assert.deepEqual(await shown('CI'), SET);
    await create('Other', '--team', 'Search', '--regions', 'us');
    assert.deepEqual(await listed('--team', 'PAYMENTS'), ['CI']);
    assert.deepEqual(await listed('--regions', 'us', '--sort', 'name'), ['CI', 'Other']);
    assert.match(await cli(['apikey', 'list', '--columns', 'name,team,cost-centre']), /CI\s+Payments\s+42/);
    const { changes } = await json('apikey update --name CI --team Web --cost-centre'.split(' ').concat(''));
    assert.deepEqual(changes, [
      { field: 'team', before: 'Payments', after: 'Web' },
      { field: 'costCentre', before: 42, after: null },
    ]);
    for (const [flags, message] of [
      [['--risk', 'HIHG'], /Did you mean HIGH/],
      [['--cost-centre', '1000'], /from 1 to 999/],
      [['--team', 'x'.repeat(21)], /21 characters long/],
      [['--regions', 'a,b,c,d'], /4 items; at most 3/],
      [['--regions', 'a;b'], /"a;b" has a comma or semicolon/],
    ] as const) {
      const { code, error } = await json(['apikey', 'update', '--name', 'CI', ...flags], { code: 2 });
      assert.equal(code, 'INPUT_INVALID');
      assert.match(error as string, message);
    }
    const help = await cli(['apikey', 'create', '--help']);
    for (const text of ['--team=<text>', 'Team of the key.', '--cost-centre=', '--risk=', '--regions='])
      assert.ok(help.includes(text), text);
    const helpOfList = (await cli(['apikey', 'list', '--help'])).replaceAll(/\s+/g, ' ');
    assert.match(helpOfList, /in this order: [^.]*, team, cost-centre, risk, regions\..*Only keys with this team\./);
    const helpOfImport = (await cli(['apikey', 'import', '--help'])).replaceAll(/\s+/g, ' ');
    assert.match(helpOfImport, /"metadata", "team", "costCentre", "risk", "regions"/);
    await cli(['apikey', 'log', '--verify']);
  });

  it('goes through export and import, apply, and backup and restore', async () => {
    const exported = await cli(['apikey', 'export']);
    await cli(['backup', join(data.path, 'backup')]);
    const declared = { keys: [{ name: 'CI', roles: ['GUEST'], ...SET, team: 'Web', regions: [] }] };
    await cli(['apikey', 'apply', '-'], { input: JSON.stringify(declared) });
    assert.deepEqual(await shown('CI'), { ...SET, team: 'Web', regions: [] });
    await cli(['restore', join(data.path, 'backup'), '--yes']);
    assert.deepEqual(await shown('CI'), SET);
    database = join(tempFolder(), 'other.sqlite');
    const secrets = exported
      .replace(/"prefix":"[^"]*",/, '')
      .replace('"name":"CI"', '"name":"CI","secret":"other-secret-of-somebody-0123456789"');
    await cli(['apikey', 'import', '-'], { input: secrets });
    assert.deepEqual([await shown('CI'), await listed('--team', 'payments')], [SET, ['CI']]);
  });

  it('is in GraphQL, the console, and commands on a server', async () => {
    const { serve, key } = await serveWith();
    try {
      const own = 'team costCentre risk regions';
      const ask = async (document: string, variables = {}) => (await query(serve.url, key, document, variables)).body;
      const input = { name: 'New', roles: ['GUEST'], ...SET };
      const { data: made } = await ask(
        `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { ${own} } } }`,
        { input },
      );
      assert.deepEqual(made, { createApiKey: { apiKey: SET } });
      const { data: found } = await ask('{ apiKeyList(team: "payments", regions: ["us"]) { keys { name } } }');
      assert.deepEqual(found, { apiKeyList: { keys: [{ name: 'New' }, { name: 'CI' }] } });

      const visitor = new Visitor(serve.url);
      await visitor.signIn(key);
      const { html } = await visitor.open('keys/new');
      for (const help of ['Team of the key.', 'Cost centre, from 1 to 999.', 'LOW, MEDIUM or HIGH.'])
        assert.ok(html.includes(help), help);
      const { text } = await visitor.open('keys?team=payments');
      assert.match(text, /1–2 of 2/);

      onServer = { SVC_API_SERVER: serve.url, SVC_API_KEY: key };
      await create('Remote', ...FLAGS);
      assert.deepEqual(await shown('Remote'), SET);
      assert.deepEqual(await listed('--team', 'payments', '--sort', 'name'), ['CI', 'New', 'Remote']);
    } finally {
      await serve.stop();
    }
  });

  it('that is gone leaves its values, which are there when it is installed again', async () => {
    data.uninstall('svc-api-team');
    assert.deepEqual(fieldsOf(await json(['apikey', 'show', 'CI'])), fieldsOf({}));
    await cli(['apikey', 'update', '--name', 'CI', '--description', 'Changed', '--tag', 'env=prod']);
    await cli(['apikey', 'rotate', 'CI', '--grace', '1h']);
    await cli(['apikey', 'log', '--verify']);
    const doctor = await cli(['doctor']);
    assert.match(
      doctor,
      /warning +PLUGINS +The plugin svc-api-team is not installed\. 1 key has a value of its fields/,
    );
    assert.match(doctor, /costCentre, regions, risk and team/);
    assert.match(doctor, /plugins install svc-api-team/);
    assert.equal((await json(['apikey', 'list', '--team', 'x'], { code: 2 }))['code'], 'USAGE');
    await cli(['backup', join(data.path, 'backup')]);
    await cli(['apikey', 'update', '--name', 'CI', '--description', 'Again']);
    await cli(['restore', join(data.path, 'backup'), '--yes']);
    data.install('svc-api-team', TEAM);
    assert.doesNotMatch(await cli(['doctor']), /PLUGINS/);
    assert.deepEqual([await shown('CI'), await listed('--team', 'payments')], [SET, ['CI']]);
    await cli(['apikey', 'log', '--verify']);
  });

  it('that is gone has its values left out of keys that a restore brings back', async () => {
    await create('Gone', '--team', 'Red');
    const backup = join(data.path, 'backup');
    await cli(['backup', backup]);
    await cli(['apikey', 'update', '--name', 'CI', '--team', 'Blue']);
    await cli(['apikey', 'disable', 'CI', '--yes']);
    await cli(['apikey', 'delete', '--name', 'Gone', '--yes']);
    data.uninstall('svc-api-team');
    const restore = ['restore', backup, '--restore-revoked-all'];
    assert.match(await cli([...restore, '--dry-run']), /svc-api-team\.team/);
    await cli([...restore, '--yes']);
    data.install('svc-api-team', TEAM);
    assert.deepEqual([await shown('CI'), await listed('--team', 'blue')], [{ ...SET, team: 'Blue' }, ['CI']]);
    assert.deepEqual([(await shown('Gone')).team, await listed('--team', 'red')], [null, []]);
    assert.doesNotMatch(await cli(['doctor']), /failure/);
  });

  it('has fields of each kind at every door', async () => {
    data.install(
      'svc-api-kinds',
      pluginOf(
        'svc-api-kinds',
        `beta: { kind: 'flag', label: 'Beta', help: 'Whether beta.', filter: true },
        reviewBy: { kind: 'time', label: 'Review by', help: 'When it is reviewed.', removable: true },
        extra: { kind: 'json', bytes: 30, label: 'More data', help: 'More.', removable: true },
        motto: { kind: 'line', max: 500, label: 'Team motto', help: 'A motto.', filter: true }`,
      ),
    );
    const wide = '\u{1F600}'.repeat(500);
    const set = { beta: false, reviewBy: '2030-01-31T00:00:00.000Z', extra: { a: [1] }, motto: wide };
    const flags = ['--beta', 'no', '--review-by', '2030-01-31', '--extra', '{"a": [1]}', '--motto', wide];
    const of = ({ beta, reviewBy, extra, motto }: Json) => ({ beta, reviewBy, extra, motto });
    const shownAs = async (name: string) => of(await json(['apikey', 'show', name]));
    await create('Kinds', ...flags);
    assert.deepEqual(await shownAs('Kinds'), set);
    assert.deepEqual(await listed('--beta', 'false'), ['Kinds']);
    assert.match(
      await cli(['apikey', 'list', '--columns', 'name,beta,review-by,extra']),
      /Kinds\s+false\s+2030-01-31T/,
    );
    for (const [flag, value, message] of [
      ['--beta', 'maybe', /must be true or false/],
      ['--review-by', '2030-02-31', /The review by "2030-02-31" is not a day or a time/],
      ['--extra', '[]', /^The more data must be a JSON object/],
      ['--motto', 'x'.repeat(501), /^The team motto is 501 characters long/],
      ['--extra', JSON.stringify({ a: 'x'.repeat(30) }), /at most 30/],
    ] as const) {
      const { code, error } = await json(['apikey', 'update', '--name', 'Kinds', flag, value], { code: 2 });
      assert.equal(code, 'INPUT_INVALID');
      assert.match(error as string, message);
    }
    const exported = await cli(['apikey', 'export']);
    await cli(['backup', join(data.path, 'backup')]);
    const keys = [{ name: 'Kinds', roles: ['GUEST'], ...set, beta: true, reviewBy: '', extra: null }];
    await cli(['apikey', 'apply', '-'], { input: JSON.stringify({ keys }) });
    assert.deepEqual(await shownAs('Kinds'), { beta: true, reviewBy: null, extra: null, motto: wide });
    await cli(['restore', join(data.path, 'backup'), '--yes']);
    assert.deepEqual(await shownAs('Kinds'), set);
    const line = exported.split('\n').find((each) => each.includes('"Kinds"'))!;
    await cli(['apikey', 'delete', 'Kinds', '--yes']);
    const secret = '"name":"Kinds","secret":"other-secret-of-somebody-0123456789"';
    await cli(['apikey', 'import', '-'], {
      input: line.replace(/"prefix":"[^"]*",/, '').replace('"name":"Kinds"', secret),
    });
    assert.deepEqual(await shownAs('Kinds'), set);
    const { serve, key } = await serveWith();
    try {
      const document = 'query { apiKeyList(beta: false) { keys { name beta reviewBy extra motto } } }';
      const { body } = await query(serve.url, key, document);
      assert.deepEqual(body.data, { apiKeyList: { keys: [{ name: 'Kinds', ...set }] } });
      const visitor = new Visitor(serve.url);
      await visitor.signIn(key);
      const { text } = await visitor.open('keys?beta=no');
      assert.match(text, /1–1 of 1/);
      onServer = { SVC_API_SERVER: serve.url, SVC_API_KEY: key };
      await create('Remote', ...flags);
      assert.deepEqual(await shownAs('Remote'), set);
      assert.deepEqual(await listed('--beta', 'no', '--sort', 'name'), ['Kinds', 'Remote']);
    } finally {
      await serve.stop();
    }
  });

  it('that changes a field keeps what still is a value', async () => {
    data.install('svc-api-team', pluginOf('svc-api-team', `team: ${line(', filter: true')}, owning: ${line()}`));
    const key = await json(['apikey', 'update', '--name', 'CI', '--owning', 'Ada']);
    assert.deepEqual([(key['apiKey'] as Json)['team'], await listed('--team', 'payments')], ['Payments', ['CI']]);
    data.install('svc-api-team', TEAM);
    assert.deepEqual(await shown('CI'), SET);
  });

  it('that drops a choice or changes a kind keeps the value until another is set', async () => {
    const { key } = (await create('Parent', '--roles', 'ADMIN', ...FLAGS)) as { key: string };
    const team = `team: ${line(', filter: true')}`;
    const risk = (rest: string) =>
      pluginOf('svc-api-team', `${team}, risk: { label: 'Risk', help: 'Risk.', removable: true, ${rest} }`);
    const [number, fewer] = [`kind: 'number'`, `kind: 'choice', values: ['LOW', 'CRITICAL']`];
    for (const rest of [number, fewer]) {
      data.install('svc-api-team', risk(rest));
      assert.equal((await json(['apikey', 'show', 'Parent']))['risk'], null);
      await cli(['apikey', 'update', '--name', 'Parent', '--description', rest]);
      await cli(['apikey', 'verify', '-'], { input: key });
      await cli(['apikey', 'log', '--verify']);
    }
    data.install('svc-api-team', TEAM);
    assert.deepEqual(await shown('Parent'), SET);
    data.install('svc-api-team', risk(fewer));
    await cli(['apikey', 'update', '--name', 'Parent', '--risk', 'LOW']);
    assert.equal((await json(['apikey', 'show', 'Parent']))['risk'], 'LOW');
    await cli(['apikey', 'log', '--verify']);
    await cli(['apikey', 'update', '--name', 'Parent', '--risk', '']);
    await cli(['apikey', 'log', '--verify']);
    data.install('svc-api-team', TEAM);
    assert.deepEqual(await shown('Parent'), { ...SET, risk: null });
  });

  it('finds no key by values of another plugin, or of another kind, with the same name', async () => {
    data.uninstall('svc-api-team');
    data.install('other', pluginOf('other', `team: ${line(', filter: true')}`));
    assert.deepEqual(await listed('--team', 'payments'), []);
    data.uninstall('other');
    data.install('svc-api-team', pluginOf('svc-api-team', `team: ${line()}`));
    await cli(['apikey', 'update', '--name', 'CI', '--team', 'Web']);
    data.install('svc-api-team', TEAM);
    assert.deepEqual(await listed('--team', 'payments'), []);
    assert.deepEqual(await listed('--regions', 'eu'), ['CI']);
  });

  it('that is invalid is refused by name by each command on keys, and by no others', async () => {
    for (const [result, ...expected] of [
      [pluginOf('other', `team: ${line()}`), 'svc-api-team', '"team"'],
      [pluginOf('another', ''), 'must be that of its package, "other"'],
      ['(() => { throw new Error("no disk"); })()', 'no disk'],
      ['undefined', 'returned no feature'],
      ['[{ name: "other" }]', 'a list'],
      ['({ get name() { throw new Error("no name"); } })', 'no name'],
      ['({ name: "other", get fields() { throw new Error("no fields"); } })', 'no fields'],
      [
        '({ name: "other", get routes() { if (globalThis.read) throw new Error("no routes"); globalThis.read = 1; return () => {}; } })',
        'no routes',
      ],
      ['export const feature = { name: "other" };', 'returned no feature'],
      ['export default { name: "other" };', 'does not export a function'],
    ] as const) {
      if (result.startsWith('export ')) {
        const manifest = { oclif: { hooks: { 'svc-api:feature': './hook.js' } } };
        data.install('other', 'null', undefined, manifest, { 'hook.js': result });
      } else data.install('other', result);
      const { error, code } = await json(['apikey', 'show', 'CI'], { code: 1 });
      assert.equal(code, 'FEATURE_INVALID');
      for (const text of ['other', ...expected]) assert.ok((error as string).includes(text), error as string);
    }
    assert.match(await cli(['--help']), /USAGE/);
    data.uninstall('other');
    assert.deepEqual(await shown('CI'), SET);
  });

  it('that lacks a feature, or is for another version, is refused before the store is opened', async () => {
    const there = database;
    database = join(tempFolder(), 'none.sqlite');
    const needing = (name: string, ...needs: string[]) => `{ name: '${name}', needs: ${JSON.stringify(needs)} }`;
    const refusal = async () => {
      const { error, code } = await json(['apikey', 'list'], { code: 1 });
      assert.deepEqual([code, existsSync(database)], ['FEATURE_INVALID', false]);
      return error as string;
    };
    const peer = (range: unknown) =>
      data.install('other', needing('other'), undefined, { peerDependencies: { 'svc-api': range } });
    for (const [install, ...expected] of [
      [() => data.install('other', needing('other', 'gaurd')), /other is invalid.*"gaurd".*Did you mean guard/],
      [() => data.install('guard', needing('guard')), /guard is invalid.*A feature of svc-api has this name/],
      [() => data.install('other', needing('other', 'another')), /other is invalid.*"another"/],
      [() => peer('^99.0.0'), /other is invalid.*\^99\.0\.0.*this is \d/],
      [() => peer('latest'), /other is invalid.*latest/],
      [() => peer(7), /other is invalid.*made for svc-api 7/],
      [() => data.install('other', needing('other', 'other')), /other is invalid.*It needs itself\.$/],
    ] as const) {
      install();
      const error = await refusal();
      for (const each of expected) assert.match(error, each);
      data.uninstall('guard');
    }
    peer('>=0.1.0');
    data.install('a', needing('a', 'other', 'guard'));
    database = there;
    assert.deepEqual(await listed(), ['CI']);
    data.install('other', needing('other', 'a'));
    assert.match((await json(['apikey', 'list'], { code: 1 }))['error'] as string, /It needs itself through other/);
  });

  it('follows keys in the transaction of a change, and has endpoints', async () => {
    data.install(
      'other',
      `{ name: 'other',
        onKeys: { changed: async (transaction, changes) => {
          for (const { after } of changes) if (after.team === 'Nobody') throw new Error('Nobody is no team.');
        } },
        routes: async (app, { bearer }) => {
          app.get('/whoami', bearer('/whoami', 'API_KEY:READ_ANY').auth, (context) =>
            context.json(context.get('principal').apiKey.name));
        } }`,
    );
    const refused = (result: Json) => {
      assert.equal(result['code'], 'FEATURE_FAILED');
      assert.match(result['error'] as string, /onKeys\.changed of other.*Nobody is no team/);
    };
    refused(await json('apikey update --name CI --team Nobody'.split(' '), { code: 1 }));
    assert.equal((await shown('CI')).team, 'Payments');
    const { serve, key } = await serveWith();
    try {
      const get = (headers: Record<string, string>) => fetch(`${serve.url}/whoami`, { headers });
      assert.equal((await get({})).status, 401);
      const answer = await get({ authorization: `Bearer ${key}` });
      assert.deepEqual([answer.status, await answer.json()], [200, 'Admin']);
      onServer = { SVC_API_SERVER: serve.url, SVC_API_KEY: key };
      refused(await json('apikey update --name CI --team Nobody'.split(' '), { code: 1 }));
    } finally {
      await serve.stop();
    }
  });

  describe('with tables of its own', () => {
    const table = 'plugin_other_changes';
    const STORE = (name = table) => `{ name: 'other',
      store: async () => ({
        tables: { ${name}: ['key_id'] },
        migrations: [{ name: 'first', up: (db, { keyId, text }) => db.schema.createTable('${name}')
          .addColumn('key_id', keyId, (column) => column.primaryKey().notNull().references('api_keys.id').onDelete('cascade'))
          .addColumn('last', text).execute() }],
        ports: [{ port: globalThis.port = { name: 'changes' }, read: () => ({}), write: ({ db }) => ({
          note: (key_id, last) => db.insertInto('${name}').values({ key_id, last })
            .onConflict((conflict) => conflict.column('key_id').doUpdateSet({ last })).execute() }) }],
      }),
      onKeys: { changed: async (transaction, changes) => {
        for (const { after } of changes) await transaction.port(globalThis.port).note(after.id, after.team);
      } } }`;
    const lasts = async (where = database) =>
      (await readDirectly(where, `select last from ${table} order by last`)).map(({ last }) => last);

    it('keeps them in the transaction of a change, and while it is gone', async () => {
      data.install('other', STORE());
      await create('A', '--team', 'Red');
      await create('B', '--team', 'Blue');
      assert.deepEqual(await lasts(), ['Blue', 'Red']);
      data.uninstall('other');
      assert.match(
        await cli(['doctor']),
        /warning +PLUGINS +The plugin other is not installed\..*plugin_other_changes/s,
      );
      await cli('apikey delete --name B --yes'.split(' '));
      await cli(['backup', join(data.path, 'backup')]);
      assert.deepEqual(await lasts(join(data.path, 'backup')), ['Red']);
      database = join(tempFolder(), 'restored.sqlite');
      await cli(['restore', join(data.path, 'backup'), '--force', '--yes']);
      assert.match(await cli(['doctor']), /No problems found|0 failures/);
      data.install('other', STORE());
      await cli('apikey update --name CI --team Green'.split(' '));
      assert.deepEqual(await lasts(), ['Green', 'Red']);
    });

    it('leaves no file of a new store if a migration fails', async () => {
      data.install(
        'other',
        STORE().replace('.execute() }],', ".execute().then(() => { throw new Error('no room') }) }],"),
      );
      database = join(tempFolder(), 'folder/keys.sqlite');
      const { code, error } = await json('apikey create --name A --roles GUEST'.split(' '), { code: 1 });
      assert.equal(code, 'FEATURE_INVALID');
      assert.match(error as string, /other is invalid.*"first" failed: no room/);
      assert.equal(existsSync(dirname(database)), false);
    });

    it('is refused by name before the store is opened, if a table is not named after it', async () => {
      data.install('other', STORE('changes'));
      const { code, error } = await json(['apikey', 'list'], { code: 1 });
      assert.equal(code, 'FEATURE_INVALID');
      assert.match(error as string, /other is invalid.*"changes".*"plugin_other_"/);
    });
  });

  it('has its commands under its headings in the help of apikey', async () => {
    data.install('svc-api-teams', '{}', [], { oclif: { commands: './commands' } });
    const folder = join(data.path, 'svc-api/node_modules/svc-api-teams/commands/apikey');
    mkdirSync(folder, { recursive: true });
    for (const [name, group] of Object.entries({ hand: 'Keys', teams: 'Teams' })) {
      const members = `static group = '${group}'; static summary = 'Command of a plugin.'; static run() {}`;
      writeFileSync(join(folder, `${name}.js`), `export default class { ${members} }`);
    }
    mkdirSync(join(folder, '../deploy'));
    writeFileSync(
      join(folder, '../deploy/approve.js'),
      `import { Command } from ${JSON.stringify(pathToFileURL(join(ROOT, 'node_modules/@oclif/core/lib/index.js')).href)};
      export default class extends Command {
        static summary = 'Approve a deploy.';
        static enableJsonFlag = true;
        static args = { how: { name: 'how', input: [], type: 'option', parse: async (text) => text } };
        async run() {
          const { args } = await this.parse();
          if (args.how === 'exit') this.error('no such deploy', { exit: 3 });
          throw Object.assign(new Error('No such deploy.'), args.how === 'code' && { code: 'DEPLOY_MISSING' });
        }
      }`,
    );
    const base = `import Approve from './approve.js';
      class Base extends Approve { toErrorJson(error) { return { failed: error.message }; } }
      export default class extends Base { static summary = 'Deny a deploy.'; }`;
    writeFileSync(join(folder, '../deploy/deny.js'), base);
    const entry = `{ exit: 7, status: 404, meaning: 'There is no such deploy.', causes: ['a wrong name'], remedy: 'Create it.' }`;
    data.install('other', `{ name: 'other', errors: { DEPLOY_MISSING: ${entry} } }`);
    assert.match(await cli(['--help']), /^ {2}deploy approve +Approve a deploy\.$/m);
    for (const [how, code, error, exit] of [
      ['exit', 'UNEXPECTED', 'no such deploy', 3],
      ['throw', 'UNEXPECTED', 'No such deploy.', 1],
      ['code', 'DEPLOY_MISSING', 'No such deploy.', 7],
    ] as const)
      assert.deepEqual(await json(['deploy', 'approve', how], { code: exit }), { error, code });
    const { error, code } = await json(['deploy', 'approve', 'exit', 'more'], { code: 2 });
    assert.deepEqual([code, /Unexpected argument: more/.test(error as string)], ['USAGE', true]);
    assert.deepEqual(await json(['deploy', 'deny'], { code: 1 }), { failed: 'No such deploy.' });
    const help = await cli(['apikey', '--help']);
    assert.match(help, /^KEYS\n(?: {2}.*\n)* {2}apikey hand +Command of a plugin\.$/m);
    assert.match(help, /^TEAMS\n {2}apikey teams +Command of a plugin\.$/m);
  });

  it('works beside the requests of a server, from its start to its end', async () => {
    const file = join(data.path, 'pulse.log');
    data.install(
      'svc-api-pulse',
      `{ name: 'svc-api-pulse', background: async ({ keys, config, turn }) => {
        const { appendFileSync } = await import('node:fs');
        const note = (text) => appendFileSync(${JSON.stringify(file)}, text + '\\n');
        note(\`started by \${config.limits.failedCredentials}\`);
        void turn.then(async () => note(\`\${await keys.store.check().then(() => 'has')} its turn\`));
        return {
          prepare: async (changed) => {
            if (changed.config.limits.failedCredentials === '1/m') {
              note('refuses 1/m');
              throw new Error('Not that.');
            }
            return () => note(\`goes on by \${changed.config.limits.failedCredentials}\`);
          },
          stop: () => {
            note('stopped');
            return new Promise(() => {});
          },
        };
      } }`,
    );
    const notes = () => readFileSync(file, 'utf8').trim().split('\n');
    const config = join(data.path, 'svc-api.yaml');
    // A file that is being written can be read incomplete.
    const configure = (limit: string) => {
      writeFileSync(`${config}.new`, `limits: { failedCredentials: ${limit} }\n`);
      renameSync(`${config}.new`, config);
    };
    configure('20/m');
    const serve = await startServe(database, ['--port', '0', '--config', config], data.env);
    try {
      await until(() => notes().includes('has its turn'));
      configure('1/m');
      serve.kill('SIGHUP');
      await until(() => /Not that\..*the configuration was not loaded/.test(serve.log));
      configure('5/m');
      serve.kill('SIGHUP');
      await until(() => notes().includes('goes on by 5/m'));
    } finally {
      await serve.stop();
    }
    const expected = ['started by 20/m', 'has its turn', 'refuses 1/m', 'goes on by 5/m', 'stopped'];
    assert.deepEqual([...new Set(notes())], expected);
    assert.match(serve.log, /svc-api-pulse.*did not stop as it should/);
  });

  it('that has an endpoint at the path of another one is refused by name', async () => {
    const installAt = (name: string, path: string) =>
      data.install(
        name,
        `{ name: '${name}', routes: async (app) => void app.get('${path}', (context) => context.text('mine')) }`,
      );
    installAt('svc-api-first', '/first');
    for (const [path, other] of [
      ['/graphql', 'svc-api'],
      ['/auth/mine', 'svc-api'],
      ['/console/mine', 'svc-api'],
      ['/healthz', 'svc-api'],
      ['/first', 'svc-api-first'],
    ] as const) {
      installAt('svc-api-mine', path);
      const env = { ...data.env, SVC_API_DATABASE: database };
      const { code, stderr } = await runCliWithInput('', ['serve', '--port', '0'], { env });
      assert.equal(code, 1);
      for (const part of ['svc-api-mine', `${path} has`, ` ${other} answers`])
        assert.ok(stderr.replaceAll(/\s+/g, ' ').includes(part), stderr);
    }
  });

  it('answers errors of its own endpoints, and no others', async () => {
    data.install(
      'svc-api-mine',
      `{ name: 'svc-api-mine', routes: async (app) => {
          app.get('/mine', () => { throw new Error('mine'); });
          app.onError((error, context) => context.text('an error of ' + error.message, 418));
          app.notFound((context) => context.text('nothing of mine', 404));
        } }`,
    );
    data.install(
      'svc-api-other',
      `{ name: 'svc-api-other', routes: async (app) => void app.get('/other', () => { throw new Error('other'); }) }`,
    );
    const { serve } = await serveWith();
    try {
      const get = async (path: string) => {
        const answer = await fetch(serve.url + path);
        return [answer.status, await answer.text()] as const;
      };
      assert.deepEqual(await get('/mine'), [418, 'an error of mine']);
      const codeOf = ([status, body]: readonly [number, string]) => {
        const { errors } = JSON.parse(body) as { errors: { extensions: { code: string } }[] };
        return [status, errors[0]!.extensions.code];
      };
      assert.deepEqual(codeOf(await get('/other')), [500, 'INTERNAL_SERVER_ERROR']);
      assert.deepEqual(codeOf(await get('/nothing')), [404, 'NOT_FOUND']);
    } finally {
      await serve.stop();
    }
  });

  it('that fails as a server starts is refused by name', async () => {
    for (const members of [
      "routes: async () => { throw new Error('no disk'); }",
      "background: async () => { throw new Error('no disk'); }",
      'background: async () => {}',
    ]) {
      data.install('svc-api-mine', `{ name: 'svc-api-mine', ${members} }`);
      const env = { ...data.env, SVC_API_DATABASE: database };
      const { code, stderr } = await runCliWithInput('', ['serve', '--port', '0'], { env });
      assert.deepEqual([code, /svc-api-mine is invalid/.test(stderr)], [1, true], stderr);
    }
  });

  it('that never finishes loading or starting is refused by name after a while', async () => {
    const never = '() => new Promise(() => {})';
    const members = {
      config: `{ sections: { 'svc-api-mine': ${never} } }`,
      ...Object.fromEntries(['store', 'schema', 'routes', 'background'].map((member) => [member, never])),
    };
    const refused = Object.entries(members).map(async ([member, value]) => {
      const own = new DataFolder();
      own.install('svc-api-mine', `{ name: 'svc-api-mine', ${member}: ${value} }`);
      const config = join(tempFolder(), 'svc-api.yaml');
      writeFileSync(config, 'title: Keys\n');
      const env = { ...own.env, SVC_API_DATABASE: join(tempFolder(), 'keys.sqlite') };
      const { code, stderr } = await runCliWithInput('', ['serve', '--port', '0', '--config', config], { env });
      assert.equal(code, 1);
      for (const part of ['svc-api-mine is invalid', `"${member}" failed: It took more than`])
        assert.ok(stderr.replaceAll(/\s+/g, ' ').includes(part), stderr);
    });
    await Promise.all(refused);
  });

  it('that never finishes a migration fails the command', async () => {
    const never = '() => new Promise(() => {})';
    const migration = `async () => ({ migrations: [{ name: 'first', up: ${never} }], tables: {} })`;
    for (const [members, args] of [
      [`store: ${migration}`, ['apikey', 'create', 'CI', '--roles', 'GUEST']],
      [`store: ${migration}`, ['apikey', 'create', 'CI', '--roles', 'GUEST', '--json']],
      [`store: ${migration}`, ['serve', '--port', '0']],
    ] as const) {
      data.install('svc-api-mine', `{ name: 'svc-api-mine', ${members} }`);
      const env = { ...data.env, SVC_API_DATABASE: join(tempFolder(), 'keys.sqlite') };
      const { code, stdout, stderr } = await runCliWithInput('', args, { env });
      assert.equal(code, 1, stdout + stderr);
      if (args.includes('--json' as never))
        assert.equal((JSON.parse(stdout) as { code: string }).code, 'FEATURE_FAILED');
      else assert.match(stderr, /Code: FEATURE_FAILED/);
    }
  });

  it('has error codes, with which commands, servers and endpoints fail', async () => {
    const withErrors = (errors: string, more = '') => `{ name: 'other', errors: { ${errors} }, ${more} }`;
    const entry = `{ exit: 7, status: 409, meaning: 'A key has no team.', causes: ['--team was left out'],
      remedy: 'Pass --team.' }`;
    data.install(
      'other',
      withErrors(
        `TEAM_MISSING: ${entry}`,
        `onKeys: { changed: async (transaction, changes) => changes.forEach(({ after: { name, team } }) => {
          if (!team) throw Object.assign(new Error(name + ' has no team.'), { code: 'TEAM_MISSING' });
        }) },
        routes: async (app) => {
          app.get('/fails', () => { throw Object.assign(new Error('No team.'), { code: 'TEAM_MISSING' }); });
        }`,
      ),
    );
    const without = ['apikey', 'create', '--name', 'New', '--roles', 'GUEST'];
    const expected = { error: 'New has no team.', code: 'TEAM_MISSING' };
    assert.deepEqual(await json(without, { code: 7 }), expected);
    const { stderr } = await finished(startCli(without, { env: { ...data.env, SVC_API_DATABASE: database } }));
    for (const text of [
      'New has no team.',
      'Code: TEAM_MISSING',
      '--team was left out',
      'Pass --team.',
      'Plugin: other',
    ])
      assert.ok(stderr.includes(text), stderr);
    assert.match(await cli(['help', 'exit-codes']), /^ +7 +.*TEAM_MISSING/m);
    const { key } = (await create('Admin', '--roles', 'ADMIN', '--team', 'Web')) as { key: string };
    const serve = await startServe(database, ['--port', '0'], data.env);
    try {
      const document = 'mutation { createApiKey(input: { name: "New", roles: [GUEST] }) { key } }';
      const { body } = await query(serve.url, key, document);
      const [{ message, extensions }] = body.errors as unknown as [{ message: string; extensions: Json }];
      assert.deepEqual([message, extensions['code']], ['New has no team.', 'TEAM_MISSING']);
      const answer = await fetch(`${serve.url}/fails`);
      const failed = (await answer.json()) as { errors: unknown };
      assert.deepEqual(
        [answer.status, failed.errors],
        [409, [{ message: 'No team.', extensions: { code: 'TEAM_MISSING' } }]],
      );
      onServer = { SVC_API_SERVER: serve.url, SVC_API_KEY: key };
      assert.deepEqual(await json(without, { code: 7 }), expected);
      onServer = undefined;
    } finally {
      await serve.stop();
    }
    for (const [code, ...messages] of [
      ['NAME_TAKEN', /error code NAME_TAKEN is one of svc-api itself/],
      ['NOT_ACCEPTABLE', /NOT_ACCEPTABLE is one of svc-api itself/],
      ['CONSENT_OFF', /CONSENT_OFF is one of consent/],
      ['teamMissing', /error code "teamMissing" is not valid/],
      ['ERR_TEAM', /"ERR_TEAM" is not valid/],
    ] as const) {
      data.install('other', withErrors(`${code}: ${entry}`));
      const { error } = await json(['apikey', 'list'], { code: 1 });
      for (const each of [/other is invalid/, ...messages]) assert.match(error as string, each);
    }
    data.install('other', withErrors(`TEAM_MISSING: ${entry.replace('remedy', 'remdy')}`));
    assert.match((await json(['apikey', 'list'], { code: 1 }))['error'] as string, /TEAM_MISSING.*remdy.*remedy/);
  });

  it('refuses requests by an exception of Hono', async () => {
    const hono = pathToFileURL(join(ROOT, 'node_modules/hono/dist/http-exception.js')).href;
    data.install(
      'other',
      `{ name: 'other', routes: async (app) => {
        const { HTTPException } = await import('${hono}');
        app.get('/refuses', () => { throw new HTTPException(409, { message: 'Not now.' }); });
      } }`,
    );
    const serve = await startServe(database, ['--port', '0'], data.env);
    try {
      const answer = await fetch(`${serve.url}/refuses`);
      assert.deepEqual([answer.status, await answer.text()], [409, 'Not now.']);
    } finally {
      await serve.stop();
    }
  });

  it('gets the copy of svc-api that runs, by import and by require', async () => {
    const files = { 'required.cjs': "module.exports = [require('svc-api/feature'), require('svc-api')];\n" };
    data.install(
      'other',
      `{ name: 'other', checks: [{ name: 'OTHER', run: async () => {
        const [feature, library] = (await import('./required.cjs')).default;
        const isSame = feature.addFeatures === (await import('svc-api/feature')).addFeatures &&
          library.openKeys === (await import('svc-api')).openKeys;
        return [{ status: 'ok', message: isSame ? 'The same.' : 'Another one.' }];
      } }] }`,
      undefined,
      {},
      files,
    );
    assert.match(await cli(['doctor']), /^ok +OTHER +The same\.$/m);
  });

  it('keeps choices apart that differ only in case, and has them in any Unicode form', async () => {
    const values = ['low', 'LOW', 'straße', 'STRASSE', 'é'];
    const field = { kind: 'choice', values, label: 'Grade', help: 'Grade.', filter: true };
    data.install('svc-api-grade', JSON.stringify({ name: 'svc-api-grade', fields: { grade: field } }));
    for (const [index, value] of values.entries()) await create(`Key ${index}`, '--grade', value);
    for (const [index, value] of values.entries()) assert.deepEqual(await listed('--grade', value), [`Key ${index}`]);
    assert.deepEqual(await listed('--grade', 'E\u0301'), ['Key 4']);
  });

  it('has its largest list in an export, which can be imported', async () => {
    const hosts = { kind: 'list', items: 100, max: 1000, label: 'Hosts', help: 'Hosts.' };
    data.install('svc-api-hosts', JSON.stringify({ name: 'svc-api-hosts', fields: { hosts } }));
    const values = Array.from({ length: 100 }, (_, index) => String(index).padEnd(1000, 'x'));
    await create('Large', '--hosts', values.join());
    const input = await cli(['apikey', 'export', '--with-digests']);
    database = join(tempFolder(), 'other.sqlite');
    await cli(['apikey', 'import'], { input });
    assert.deepEqual((await json(['apikey', 'show', 'Large']))['hosts'], values);
  });

  it('that has a hook of an unknown name is warned of, once by each command', async () => {
    for (const hooks of [['svc-api:features'], ['svc-api:feature', 'svc-api:features']]) {
      data.install('other', pluginOf('other', ''), hooks);
      const warned = (text: string) => text.match(/other has the hook "svc-api:features", which is never called/g);
      for (const args of [
        ['apikey', 'list'],
        ['serve', '--port', '0'],
      ]) {
        const child = startCli(args, { env: { ...data.env, SVC_API_DATABASE: database } });
        if (args[0] === 'serve') child.stdout!.once('data', () => child.kill());
        const { stderr } = await finished(child);
        assert.equal(warned(stderr)?.length, 1, stderr);
      }
    }
  });

  describe('in a program that is no CLI', () => {
    const program = async (text: string) => {
      const folder = tempFolder();
      writeFileSync(
        join(folder, 'features.mjs'),
        `import { addFeatures } from '${ROOT}/dist/plugin.js';\naddFeatures(${TEAM});`,
      );
      writeFileSync(join(folder, 'program.mjs'), text.replaceAll('svc-api', join(ROOT, 'dist/index.js')));
      const { code, stdout, stderr } = await finished(spawn(process.execPath, [join(folder, 'program.mjs')]));
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout) as unknown;
    };

    it('is added before svc-api is imported', async () => {
      const result = await program(`
        import './features.mjs';
        import { OPERATOR, openKeys } from 'svc-api';
        const keys = await openKeys({ database: ':memory:' });
        const { apiKey } = await keys.create({ name: 'CI', roles: ['GUEST'], team: 'Web', regions: ['eu'] }, { actor: OPERATOR });
        const wrong = await keys.create({ name: 'B', roles: ['GUEST'], risk: 'NO' }, { actor: OPERATOR }).catch(({ code }) => code);
        console.log(JSON.stringify([apiKey.team, apiKey.regions, apiKey.risk, wrong]));
        await keys.close();`);
      assert.deepEqual(result, ['Web', ['eu'], null, 'INPUT_INVALID']);
    });

    it('is refused later', async () => {
      const result = await program(`
        import 'svc-api';
        const error = await import('./features.mjs').catch((thrown) => thrown);
        console.log(JSON.stringify([error.code, /too late/.test(error.message)]));`);
      assert.deepEqual(result, ['FEATURE_INVALID', true]);
    });
  });
});

describe('a program that chooses features', () => {
  const program = async (choice: string, text: string) => {
    const folder = tempFolder();
    writeFileSync(
      join(folder, 'features.mjs'),
      `import { chooseFeatures } from '${ROOT}/dist/plugin.js';\nchooseFeatures(${choice});`,
    );
    writeFileSync(join(folder, 'program.mjs'), text.replaceAll("'svc-api'", `'${join(ROOT, 'dist/index.js')}'`));
    const { code, stdout, stderr } = await finished(spawn(process.execPath, [join(folder, 'program.mjs')]));
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as unknown;
  };
  const FIELDS = `
    import './features.mjs';
    import { createApp, OPERATOR, openKeys } from 'svc-api';
    const keys = await openKeys({ database: ':memory:' });
    const { key } = await keys.create({ name: 'CI', roles: ['ADMIN'] }, { actor: OPERATOR });
    const app = await createApp({ keys });
    const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' };
    const body = JSON.stringify({ query: '{ __schema { queryType { fields { name } } } }' });
    const { data } = await (await app.request('/graphql', { method: 'POST', headers, body })).json();
    console.log(JSON.stringify(data.__schema.queryType.fields.map(({ name }) => name)));
    await keys.close();`;

  it('has their fields of the schema, and no others', async () => {
    const all = (await program(`'consent'`, FIELDS)) as string[];
    const none = (await program('', FIELDS)) as string[];
    assert.ok(all.includes('consentRequests') && none.includes('apiKeys'), `${all.join()} ${none.join()}`);
    assert.ok(!none.includes('consentRequests'), none.join());
  });

  it('keeps the stored data of features that it does not choose', async () => {
    const database = join(tempFolder(), 'keys.sqlite');
    await program(
      '',
      `
      import './features.mjs';
      import { OPERATOR, openKeys } from 'svc-api';
      const keys = await openKeys({ database: '${database}' });
      const { key: secret } = await keys.create({ name: 'Admin', roles: ['ADMIN'] }, { actor: OPERATOR });
      const { apiKey } = await keys.create({ name: 'Other', roles: ['GUEST'] }, { actor: OPERATOR });
      const { principal } = await keys.check({ secret });
      await keys.update(apiKey.id, { roles: ['VIEWER'] }, { actor: principal });
      console.log('{}');
      await keys.close();`,
    );
    const args = ['apikey', 'revoke', 'Admin', '--undo-changes', '--dry-run', '--json'];
    const { stdout } = await runCliWithInput('', args, { env: { SVC_API_DATABASE: database } });
    assert.match(stdout, /"name": "Other"/);
  });

  it('knows the error codes of features that it does not choose: a listener can throw them', async () => {
    const meaning = await program(
      '',
      `
      import './features.mjs';
      import { addFeatures } from '${ROOT}/dist/plugin.js';
      addFeatures({ name: 'other', errors: { CONSENT_OFF: { exit: 1, meaning: 'Mine.', causes: ['mine'], remedy: 'None.' } } });
      const { openKeys } = await import('${join(ROOT, 'dist/index.js')}');
      await openKeys({ database: ':memory:' }).catch(({ message }) => console.log(JSON.stringify(message)));`,
    );
    assert.match(meaning as string, /CONSENT_OFF is one of consent/);
  });

  it('is refused for a plugin with the name of one that it does not choose', async () => {
    const result = await program(
      `'apply'`,
      `
      import './features.mjs';
      import { addFeatures } from '${ROOT}/dist/plugin.js';
      addFeatures({ name: 'sessions' });
      const error = await import('svc-api').then(({ openKeys }) => openKeys({ database: ':memory:' })).catch((thrown) => thrown);
      console.log(JSON.stringify([error.code, error.message]));`.replace(
        `import('svc-api')`,
        `import('${ROOT}/dist/index.js')`,
      ),
    );
    assert.deepEqual(result, [
      'FEATURE_INVALID',
      'The feature sessions is invalid. A feature of svc-api has this name. Rename the package.',
    ]);
  });

  it('is refused for a plugin that needs one which it does not choose', async () => {
    const result = await program(
      `'apply'`,
      `
      import './features.mjs';
      import { addFeatures } from '${ROOT}/dist/plugin.js';
      addFeatures({ name: 'other', needs: ['notices'] });
      const { openKeys } = await import('${ROOT}/dist/index.js');
      const error = await openKeys({ database: ':memory:' }).catch((thrown) => thrown);
      console.log(JSON.stringify([error.code, error.message]));`,
    );
    assert.deepEqual(result, [
      'FEATURE_INVALID',
      'The feature other is invalid. It needs the feature "notices", which was not chosen. Choose it as well.',
    ]);
  });

  it('is refused for a plugin with a channel of notices that another one has', async () => {
    const result = await program(
      '',
      `
      import './features.mjs';
      import { addFeatures } from '${ROOT}/dist/plugin.js';
      const notices = { ntfy: async () => ({ open: () => async () => {} }) };
      addFeatures({ name: 'one', notices }, { name: 'two', notices });
      const { openKeys } = await import('${ROOT}/dist/index.js');
      await openKeys({ database: ':memory:' }).catch(({ code, message }) => console.log(JSON.stringify([code, message])));`,
    );
    assert.deepEqual(result, [
      'FEATURE_INVALID',
      'The feature two is invalid. svc-api or another plugin has a channel of notices "ntfy" as well. Rename it.',
    ]);
  });

  it('is refused for an unknown name', async () => {
    const result = await program(
      '',
      `
      import { chooseFeatures } from '${ROOT}/dist/plugin.js';
      try { chooseFeatures('backups'); } catch ({ code, message }) { console.log(JSON.stringify([code, message])); }`,
    );
    assert.deepEqual(result, [
      'FEATURE_INVALID',
      'The program chooses the feature "backups", which svc-api does not have. Did you mean backup?',
    ]);
  });
});
