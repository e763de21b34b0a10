import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Visitor } from '../features/console/support/console.ts';
import { cliOnTerminal, KEYS } from '../support/pty.ts';
import { DataFolder } from '../support/plugins.ts';
import { runCliWithInput } from '../support/process.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

type Json = Record<string, unknown>;

/** A kind of field, and its values. */
interface Kind {
  /** Its properties, as in a plugin. */
  readonly field: string;
  /** Its GraphQL type. */
  readonly type: string;
  /** A text for a flag or form, and the resulting value. */
  readonly set: readonly [text: string, value: unknown];
  readonly other: readonly [text: string, value: unknown];
  /** A list's cell. Default: the text. */
  readonly cell?: string;
  /** Invalid texts, with their errors. */
  readonly wrong: readonly (readonly [text: string, message: RegExp])[];
  /** True if keys can be filtered by it. */
  readonly filters?: true;
}

const removable = 'removable: true';
const KINDS: Readonly<Record<string, Kind>> = {
  motto: {
    field: `kind: 'line', max: 20, filter: true, ${removable}`,
    type: 'String',
    set: ['Be kind', 'Be kind'],
    other: ['Be quick', 'Be quick'],
    wrong: [
      ['x'.repeat(21), /21 characters long; at most 20/],
      ['two\nlines', /line breaks/],
    ],
    filters: true,
  },
  notes: {
    field: `kind: 'text', max: 30, ${removable}`,
    type: 'String',
    set: ['first line\r\n\tsecond line', 'first line\n\tsecond line'],
    other: ['one\n\nthree', 'one\n\nthree'],
    cell: 'first line second line',
    wrong: [
      ['x'.repeat(31), /31 characters long; at most 30/],
      ['bell\u0007', /control characters other than line breaks and tabs/],
    ],
  },
  costCentre: {
    field: `kind: 'number', integer: true, min: 1, max: 999, filter: true, ${removable}`,
    type: 'Int',
    set: ['42', 42],
    other: ['7', 7],
    wrong: [
      ['1000', /whole number from 1 to 999/],
      ['1.5', /whole number/],
      ['Infinity', /whole number/],
    ],
    filters: true,
  },
  share: {
    field: `kind: 'number', min: 0, max: 0.75, filter: true, ${removable}`,
    type: 'Float',
    set: ['0.1', 0.1],
    other: ['0', 0],
    wrong: [
      ['0.8', /must be a number from 0 to 0\.75/],
      ['0,1', /must be a number/],
    ],
    filters: true,
  },
  risk: {
    field: `kind: 'choice', values: ['LOW', 'HIGH'], filter: true, ${removable}`,
    type: 'String',
    set: ['HIGH', 'HIGH'],
    other: ['LOW', 'LOW'],
    wrong: [['HIHG', /Did you mean HIGH/]],
    filters: true,
  },
  regions: {
    field: `kind: 'list', of: 'line', max: 10, items: 2, filter: true, ${removable}`,
    type: '[String!]',
    set: ['eu, us', ['eu', 'us']],
    other: ['us', ['us']],
    wrong: [
      ['a,b,c', /3 items; at most 2/],
      ['x'.repeat(11), /11 characters/],
    ],
    filters: true,
  },
  ports: {
    field: `kind: 'list', of: 'number', integer: true, min: 1, max: 65535, filter: true, ${removable}`,
    type: '[Int!]',
    set: ['443, 80', [443, 80]],
    other: ['80', [80]],
    wrong: [
      ['80,many', /whole number from 1 to 65535/],
      ['0', /whole number/],
      ['80.5', /whole number/],
    ],
    filters: true,
  },
  weights: {
    field: `kind: 'list', of: 'number', items: 2, ${removable}`,
    type: '[Float!]',
    set: ['0.5, 2', [0.5, 2]],
    other: ['-1', [-1]],
    wrong: [
      ['1,2,3', /3 items; at most 2/],
      ['1,Infinity', /must be a number/],
    ],
  },
  stages: {
    field: `kind: 'list', of: 'choice', values: ['dev', 'prod'], filter: true, ${removable}`,
    type: '[String!]',
    set: ['prod, dev', ['prod', 'dev']],
    other: ['dev', ['dev']],
    wrong: [['dev,prdo', /"prdo" is unknown. Did you mean prod/]],
    filters: true,
  },
  extra: {
    field: `kind: 'json', bytes: 30, ${removable}`,
    type: 'JsonObject',
    set: ['{"a":[1]}', { a: [1] }],
    other: ['{}', {}],
    wrong: [
      ['[]', /must be a JSON object/],
      [JSON.stringify({ a: 'x'.repeat(30) }), /at most 30/],
    ],
  },
  reviewBy: {
    field: `kind: 'time', ${removable}`,
    type: 'String',
    set: ['2030-01-31', '2030-01-31T00:00:00.000Z'],
    other: ['2031-01-31T12:00:00Z', '2031-01-31T12:00:00.000Z'],
    cell: '2030-01-31T00:00:00.000Z',
    wrong: [['2030-02-31', /is not a day or a time/]],
  },
  beta: {
    field: `kind: 'flag', filter: true, ${removable}`,
    type: 'Boolean',
    set: ['no', false],
    other: ['yes', true],
    cell: 'false',
    wrong: [['maybe', /true or false/]],
    filters: true,
  },
};
const NAMES = Object.keys(KINDS);
/** The hints in prompts for kinds with a restricted format. */
const PROMPTED: Readonly<Record<string, string>> = {
  costCentre: ' <number>',
  share: ' <number>',
  risk: ' <LOW|HIGH>',
  ports: ' <number,…>',
  weights: ' <number,…>',
  stages: ' <dev|prod,…>',
  extra: ' <json>',
  reviewBy: ' <date>',
  beta: ' <yes|no>',
};
const NONE = Object.fromEntries(NAMES.map((name) => [name, KINDS[name]!.type.startsWith('[') ? [] : null]));
const valuesOf = (of: 'set' | 'other') => Object.fromEntries(NAMES.map((name) => [name, KINDS[name]![of][1]]));

/** A plugin with one field of each kind, and one of each that cannot be cleared. */
function pluginWith(rest = '') {
  const fieldOf = (name: string, field: string) => `${name}: { label: '${name}', help: 'Value of ${name}.', ${field} }`;
  const fields = NAMES.map((name) => fieldOf(name, KINDS[name]!.field));
  return `{ name: 'svc-api-kinds', fields: { ${fields.join(', ')}${rest} } }`;
}
const flagOf = (name: string) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
const flagsOf = (of: 'set' | 'other', names = NAMES) => names.flatMap((name) => [flagOf(name), KINDS[name]![of][0]]);
const emptyFlags = NAMES.flatMap((name) => [flagOf(name), '']);
const fieldsOf = (key: Json) => Object.fromEntries(NAMES.map((name) => [name, key[name]]));

describe('a field of a plugin, of each kind', () => {
  let data: DataFolder;
  let database: string;
  let onServer: NodeJS.ProcessEnv | undefined;
  beforeEach(() => {
    data = new DataFolder();
    data.install('svc-api-kinds', pluginWith());
    onServer = undefined;
    database = join(tempFolder(), 'keys.sqlite');
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
  const update = (name: string, flags: readonly string[], options = {}) =>
    json(['apikey', 'update', '--name', name, ...flags], options);
  const shown = async (name: string) => fieldsOf(await json(['apikey', 'show', name]));
  const listed = async (...flags: string[]) =>
    ((await json(['apikey', 'list', '--sort', 'name', ...flags]))['keys'] as Json[]).map(({ name }) => name);
  const serving = async (work: (serve: ServeProcess, key: string) => Promise<void>) => {
    const { key } = (await create('Admin', '--roles', 'ADMIN')) as { key: string };
    const serve = await startServe(database, ['--port', '0'], data.env);
    try {
      await work(serve, key);
    } finally {
      await serve.stop();
    }
  };

  it('is set, changed and removed by flags, on a store and on a server', async () => {
    const change = async (name: string) => {
      await create(name, ...flagsOf('set'));
      assert.deepEqual(await shown(name), valuesOf('set'));
      const { changes } = await update(name, flagsOf('other'));
      assert.deepEqual(
        Object.fromEntries((changes as Json[]).map(({ field, after }) => [field, after])),
        valuesOf('other'),
      );
      const lost = await update(name, ['--cost-centre', 'Infinity', '--weights', '1,Infinity'], { code: 2 });
      assert.equal(lost['code'], 'INPUT_INVALID');
      assert.deepEqual(await shown(name), valuesOf('other'));
      await update(name, emptyFlags);
      assert.deepEqual(await shown(name), NONE);
      await update(name, flagsOf('set'));
    };
    await change('Local');
    for (const each of NAMES)
      for (const [text, message] of KINDS[each]!.wrong) {
        const { code, error } = await update('Local', [flagOf(each), text], { code: 2 });
        assert.equal(code, 'INPUT_INVALID', each);
        assert.match(error as string, message);
      }
    await serving(async ({ url }, key) => {
      onServer = { SVC_API_SERVER: url, SVC_API_KEY: key };
      await change('Remote');
      assert.deepEqual(await listed('--ports', '80', '--regions', 'us'), ['Local', 'Remote']);
      onServer = undefined;
    });
    await cli(['apikey', 'log', '--verify']);
  });

  it('has columns, filters and help, and is in the audit log', async () => {
    await create('CI', ...flagsOf('set'));
    await create('Other', ...flagsOf('other'));
    const columns = NAMES.map((name) => flagOf(name).slice(2));
    const table = await cli(['apikey', 'list', '--columns', columns.join(), '--sort', 'name']);
    for (const name of NAMES) assert.ok(table.includes(KINDS[name]!.cell ?? KINDS[name]!.set[0]), `${name}: ${table}`);
    assert.equal(table.trimEnd().split('\n').length, 2);
    for (const name of NAMES.filter((each) => KINDS[each]!.filters))
      assert.deepEqual(await listed(flagOf(name), KINDS[name]!.set[0]), ['CI'], name);
    for (const name of NAMES.filter((each) => KINDS[each]!.filters))
      for (const empty of ['', ' ', ...(KINDS[name]!.type.startsWith('[') ? [','] : [])]) {
        const { code } = await json(['apikey', 'delete', `${flagOf(name)}=${empty}`, '--dry-run'], { code: 2 });
        assert.equal(code, 'USAGE', name);
      }
    const text = await cli(['apikey', 'show', 'CI']);
    assert.match(text, /^notes +first line\n {4,}second line$/m);
    const help = await cli(['apikey', 'update', '--help']);
    for (const name of NAMES) assert.ok(help.includes(`Value of ${name}.`), name);
    for (const flag of ['--no-ports', '--no-stages']) assert.ok(help.includes(flag), flag);
    for (const flag of ['--risk=<LOW|HIGH>', '--stages=<dev|prod,…>', '--cost-centre=<number>', '--beta=<yes|no>'])
      assert.ok(help.includes(flag), flag);
    const { stderr } = await runCliWithInput('', ['apikey', 'update', 'CI'], { env: data.env });
    assert.match(stderr, /nothing to change.*\[--cost-centre <number>\]/s);
    const { error } = await json(['apikey', 'update', 'CI', '--beta'], { code: 2 });
    assert.match(error as string, /Pass --beta <yes\|no>/);
    const misspelt = await json(['apikey', 'update', 'CI', '--cost-center', '1'], { code: 2 });
    assert.match(misspelt['error'] as string, /Did you mean --cost-centre/);
    await update('CI', ['--no-ports', '--no-stages']);
    const { ports, stages } = await shown('CI');
    assert.deepEqual([ports, stages], [[], []]);
    const log = await cli(['apikey', 'log']);
    assert.match(log, /notes: first line second line;/);
    assert.match(log, /ports: 443,80 -> -/);
    await update('CI', ['--beta', '']);
    await update('CI', ['--beta', 'no']);
    assert.match(await cli(['apikey', 'log']), /beta: false -> -\n.*beta: - -> false\n/);
  });

  it('is declared, planned, exported, imported, backed up and restored', async () => {
    const declared = (fields: object) => JSON.stringify({ keys: [{ name: 'CI', roles: ['GUEST'], ...fields }] });
    const apply = (fields: object, options = {}, ...flags: string[]) =>
      json(['apikey', 'apply', '-', ...flags], { input: declared(fields), ...options });
    await apply(valuesOf('set'));
    assert.deepEqual(await shown('CI'), valuesOf('set'));
    const { changes } = await apply(valuesOf('other'), { code: 2 }, '--dry-run');
    const [{ changes: planned }] = changes as [{ changes: Json[] }];
    assert.deepEqual(Object.fromEntries(planned.map(({ field, after }) => [field, after])), valuesOf('other'));
    for (const [fields, message] of [
      [{ ports: [80, '443'] }, /item of the ports must be a whole number/],
      [{ ports: [null] }, /item of this list is empty/],
      [{ ports: 80 }, /"ports" must be a list/],
      [{ weights: [1, 2, 3] }, /The weights has 3 items/],
      [{ stages: ['prdo'] }, /Did you mean prod/],
      [{ notes: 'bell\u0007' }, /The notes .*control characters/],
      [{ share: '0.1' }, /The share must be a number/],
    ] as const) {
      const { error } = await apply(fields, { code: 2 });
      assert.match(error as string, message);
    }
    const exported = await cli(['apikey', 'export']);
    await cli(['backup', join(data.path, 'backup')]);
    await apply({});
    assert.deepEqual(await shown('CI'), NONE);
    await cli(['restore', join(data.path, 'backup'), '--yes']);
    assert.deepEqual(await shown('CI'), valuesOf('set'));
    database = join(tempFolder(), 'other.sqlite');
    const line = exported
      .replace(/"prefix":"[^"]*",/, '')
      .replace('"name":"CI"', '"name":"CI","secret":"other-secret-of-somebody-0123456789"');
    const wrong = line.replace('[443,80]', '["443"]');
    assert.match(
      await cli(['apikey', 'import', '-', '--json'], { input: wrong, code: 2 }),
      /must be a list of numbers/,
    );
    await cli(['apikey', 'import', '-'], { input: line });
    assert.deepEqual([await shown('CI'), await listed('--ports', '443')], [valuesOf('set'), ['CI']]);
  });

  it('is in the JSON Schema that "apply --schema" prints', async () => {
    const schema = await json(['apikey', 'apply', '--schema']);
    const isValid = new Ajv2020({ allowUnionTypes: true, strictTypes: false }).compile(schema);
    const accepts = (fields: object) => isValid({ keys: [{ name: 'CI', roles: ['GUEST'], ...fields }] });
    for (const fields of [
      valuesOf('set'),
      valuesOf('other'),
      Object.fromEntries(NAMES.map((name) => [name, NONE[name]])),
      { risk: ' high', stages: ['Prod', 'DEV'] },
      { risk: '', reviewBy: '2030-01-31' },
    ])
      assert.ok(accepts(fields), JSON.stringify([fields, isValid.errors]));
    for (const fields of [
      { motto: 'two\nlines' },
      { notes: 'bell\u0007' },
      { costCentre: 1.5 },
      { share: '0.1' },
      { risk: 'HIHG' },
      { ports: ['443'] },
      { stages: ['prdo'] },
      { extra: [] },
      { mottto: 'Be kind' },
    ])
      assert.ok(!accepts(fields), JSON.stringify(fields));
    for (const given of [['keys.yaml'], ['-f', 'keys.yaml'], ['--prune']])
      assert.match(
        await cli(['apikey', 'apply', '--schema', '--json', ...given], { code: 2 }),
        /--schema and what to apply cannot be used together/,
      );
  });

  it('has its type in GraphQL, and a field in forms', () =>
    serving(async ({ url }, key) => {
      const ask = async (document: string, variables = {}) => (await query(url, key, document, variables)).body;
      const types = await ask('{ __type(name: "CreateApiKeyInput") { inputFields { name type { ...T } } } } ' + TYPE);
      const { inputFields } = (types.data as { __type: { inputFields: { name: string; type: Type }[] } }).__type;
      const typeOf = (name: string) => nameOf(inputFields.find((each) => each.name === name)!.type);
      for (const name of NAMES) assert.equal(typeOf(name), KINDS[name]!.type, name);
      const input = { name: 'New', roles: ['GUEST'], ...valuesOf('set') };
      const create = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id ';
      const { data: made } = await ask(`${create} ${NAMES.join(' ')} } } }`, { input });
      const { id, ...set } = (made as { createApiKey: { apiKey: Json } }).createApiKey.apiKey;
      assert.deepEqual(set, valuesOf('set'));
      const { data: found } = await ask('{ apiKeyList(ports: [80], share: 0.1, costCentre: 42) { keys { name } } }');
      assert.deepEqual(found, { apiKeyList: { keys: [{ name: 'New' }] } });
      const blank = await ask(
        '{ ports: apiKeyList(ports: []) { total } regions: apiKeyList(regions: [" "]) { total } }',
      );
      assert.deepEqual(blank.data, { ports: { total: 2 }, regions: { total: 0 } });

      const visitor = new Visitor(url);
      await visitor.signIn(key);
      const texts = Object.fromEntries(NAMES.map((name) => [name, KINDS[name]!.set[0]]));
      for (const [filter, message] of [
        ['costCentre=many', /must be a whole number from 1 to 999/],
        ['ports=80,x', /must be a whole number from 1 to 65535/],
        ['beta=maybe', /must be true or false/],
      ] as const) {
        const { status, text } = await visitor.open(`keys?${filter}`);
        assert.equal(status, 400);
        assert.match(text, message);
      }
      assert.match((await visitor.open('keys?costCentre=42&ports=80&share=0.1')).text, /1–1 of 1/);
      await visitor.open('keys/new');
      const fields = { name: 'Form', role: 'GUEST', expiry: 'latest', step: 'preview', ...texts };
      assert.match(visitor.page!.html, /<select id="beta"[^>]*><option value="">none<.*?>yes<.*?>no</);
      const { html, text } = await visitor.submit('keys/new', fields);
      assert.ok(html.includes('first line\n\tsecond line'), html);
      assert.match(text, /443, 80/);
      await visitor.submit('keys/new', { step: 'create' });
      assert.deepEqual(await shown('Form'), valuesOf('set'));
      assert.match((await visitor.open('audit-log')).text, /created Form .*beta false/);
      await visitor.open(`keys/${id as string}/edit`);
      assert.match(visitor.page!.html, /<textarea[^>]*name="notes"/);
      assert.match(visitor.page!.html, /<select id="risk".*<option value="HIGH" selected.*<select id="beta"/);
      assert.match(visitor.page!.html, /<select id="beta".*<option value="false" selected[^>]*>no</);
      await visitor.submit('edit', { notes: 'first line\r\n\tsecond line' });
      assert.equal(visitor.page!.path, `keys/${id as string}`);
      await visitor.open(`keys/${id as string}/edit`);
      await visitor.submit('edit', { ports: '1, x' });
      assert.match(visitor.page!.text, /must be a whole number from 1 to 65535/);
      const kept = await query(url, key, '{ apiKey(name: "New") { ports notes } }');
      assert.deepEqual(kept.body.data, { apiKey: { ports: [443, 80], notes: 'first line\n\tsecond line' } });
      await visitor.submit('edit', Object.fromEntries(NAMES.map((name) => [name, ''])));
      assert.deepEqual(await shown('New'), NONE);
    }));

  it('is asked for by prompts that say so, with its format', async () => {
    data.install('svc-api-kinds', pluginWith().replaceAll(removable, `asked: true, ${removable}`));
    const args = ['apikey', 'create', '--roles', 'GUEST', '--expires-in', '1d', '--description', ''];
    const terminal = cliOnTerminal(args, { ...data.env, SVC_API_DATABASE: database });
    try {
      await terminal.answer('? Name', `CI${KEYS.enter}`);
      await terminal.answer('? motto (optional)', `${KINDS['motto']!.set[0]}${KEYS.enter}`);
      await terminal.answer('? notes (optional)', `one line${KEYS.enter}`);
      for (const name of NAMES.slice(2)) {
        await terminal.see(`? ${name}${PROMPTED[name] ?? ''} (optional)`);
        terminal.type(`${KINDS[name]!.wrong[0]![0]}${KEYS.enter}`);
        await terminal.see('> ');
        terminal.type(`${KEYS.ctrlU}${KINDS[name]!.set[0]}${KEYS.enter}`);
      }
      assert.equal(await terminal.end(), 0);
    } finally {
      terminal.close();
    }
    assert.deepEqual(await shown('CI'), { ...valuesOf('set'), notes: 'one line' });
  });

  it('has its words completed in shells', async () => {
    const completed = async (line: string) => {
      const env = { ...data.env, SVC_API_DATABASE: database, COMP_LINE: `svc-api apikey ${line}` };
      const { stdout } = await runCliWithInput('', ['apikey', 'autocomplete', 'bash', '--complete'], { env });
      return stdout.trim().split('\n').slice(1);
    };
    assert.deepEqual(await completed('create --risk '), ['LOW', 'HIGH']);
    assert.deepEqual(await completed('update --where-stages prod,d'), ['prod,dev']);
    assert.deepEqual(await completed('list --beta '), ['yes', 'no']);
    assert.deepEqual(await completed('create --cost'), ['--cost-centre']);
  });

  it('takes choices in upper and lower case', async () => {
    await create('CI', '--risk', 'high', '--stages', 'PROD,prod,Dev');
    const { risk, stages } = await shown('CI');
    assert.deepEqual([risk, stages], ['HIGH', ['prod', 'dev']]);
    assert.deepEqual(await listed('--risk', 'High', '--stages', 'DEV'), ['CI']);
    const input = JSON.stringify({ keys: [{ name: 'CI', roles: ['GUEST'], risk: 'high', stages: ['Prod', 'DEV'] }] });
    assert.equal((await json(['apikey', 'apply', '-'], { input }))['unchanged'], 1);
  });

  it('is one of many in changes and lists of many keys on a server', async () => {
    const more = Array.from({ length: 50 }, (_, at) => `, more${at}: { kind: 'line', label: 'More', help: 'More.' }`);
    data.install('svc-api-kinds', pluginWith(more.join('')));
    await create('CI', '--motto', 'Be kind');
    await serving(async ({ url }, key) => {
      onServer = { SVC_API_SERVER: url, SVC_API_KEY: key };
      assert.deepEqual(await listed('--limit', '500', '--motto', 'Be kind'), ['CI']);
      assert.match(await cli(['apikey', 'list', '--review']), /^CI\t/m);
      await json(['apikey', 'update', '--where-motto', 'Be kind', '--more49', 'yes', '--yes']);
      await json(['apikey', 'disable', '--motto', 'Be kind', '--yes']);
      await json(['apikey', 'delete', '--motto', 'Be kind', '--yes']);
      assert.deepEqual(await listed(), ['Admin']);
      onServer = undefined;
    });
  });

  it('without "removable" can be replaced, but not removed', async () => {
    const kept = pluginWith().replaceAll(`, ${removable}`, '');
    data.install('svc-api-kinds', kept);
    await create('Bare', ...emptyFlags);
    assert.deepEqual(await shown('Bare'), NONE);
    const { key } = (await create('CI', '--roles', 'ADMIN', ...flagsOf('set'))) as { key: string };
    const refuses = async (work: () => Promise<Json>, names = ['motto']) => {
      const { code, error } = await work();
      assert.equal(code, 'INPUT_INVALID', error as string);
      for (const name of names)
        assert.match(error as string, new RegExp(`The ${name.toLowerCase()} of "\\w+" cannot be removed`));
    };
    const refusesAll = () => refuses(() => update('CI', emptyFlags, { code: 2 }), NAMES);
    await refusesAll();
    await refuses(() => update('Bare', ['--motto', ''], { code: 2 }));
    await refuses(
      () => json(['apikey', 'update', '--where-motto', 'Be kind', '--risk', '', '--yes'], { code: 2 }),
      ['risk'],
    );
    const { code } = await update('CI', ['--no-ports'], { code: 2 });
    assert.equal(code, 'USAGE');
    const input = JSON.stringify({
      keys: [
        { name: 'CI', roles: ['ADMIN', 'GUEST'] },
        { name: 'Bare', roles: ['GUEST'] },
      ],
    });
    await refuses(() => json(['apikey', 'apply', '-', '--adopt'], { input, code: 2 }));
    assert.deepEqual(await shown('CI'), valuesOf('set'));
    await update('CI', flagsOf('other'));
    assert.deepEqual(await shown('CI'), valuesOf('other'));
    const serve = await startServe(database, ['--port', '0'], data.env);
    try {
      onServer = { SVC_API_SERVER: serve.url, SVC_API_KEY: key };
      await refusesAll();
      const document = `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }`;
      const { id } = await json(['apikey', 'show', 'CI']);
      const { body } = await query(serve.url, key, document, { input: { id, ports: [], motto: null } });
      const [{ message, extensions }] = body.errors as unknown as [{ message: string; extensions: Json }];
      assert.deepEqual([extensions['code'], /cannot be removed/.test(message)], ['INPUT_INVALID', true]);
      const visitor = new Visitor(serve.url);
      await visitor.signIn(key);
      await visitor.open(`keys/${id as string}/edit`);
      await visitor.submit('edit', { motto: '' });
      assert.match(visitor.page!.text, /cannot be removed/);
    } finally {
      await serve.stop();
    }
  });

  it('keeps a value that another kind cannot have, until a new one is set', async () => {
    await create('CI', ...flagsOf('set'));
    const change = (name: string, field: string) => {
      const text = pluginWith();
      const changed = text.replace(KINDS[name]!.field, field);
      assert.notEqual(changed, text);
      data.install('svc-api-kinds', changed);
    };
    for (const [name, field] of [
      ['share', `kind: 'number', integer: true`],
      ['weights', `kind: 'list', of: 'number', integer: true`],
      ['ports', `kind: 'list'`],
      ['regions', `kind: 'list', of: 'number'`],
      ['stages', `kind: 'list', of: 'choice', values: ['dev', 'test']`],
    ] as const) {
      change(name, field);
      assert.deepEqual(await shown('CI'), { ...valuesOf('set'), [name]: NONE[name] }, name);
    }
    data.install('svc-api-kinds', pluginWith());
    assert.deepEqual(await shown('CI'), valuesOf('set'));
  });
});

interface Type {
  readonly kind: string;
  readonly name: string | null;
  readonly ofType: Type | null;
}

const TYPE = 'fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }';

function nameOf({ kind, name, ofType }: Type): string {
  if (kind === 'LIST') return `[${nameOf(ofType!)}]`;
  return kind === 'NON_NULL' ? `${nameOf(ofType!)}!` : name!;
}
