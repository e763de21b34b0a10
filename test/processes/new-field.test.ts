import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { Visitor } from '../features/console/support/console.ts';
import { type Descriptions, DOCUMENT_DOORS, doorsOf, FIELD_DOORS, FILTER_DOORS } from '../support/field-doors.ts';
import { KEYS, TerminalSession } from '../support/pty.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COPIED = [
  'bin',
  'scripts',
  'src',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'docs',
  'schemas',
];

/** The only change: more entries in the tables of fields, here three labels. */
const NEW_FIELDS = `
  team: filtered(line({ id: 101, max: 20, label: 'Team', help: 'Team of the key.', isAsked: true })),
  costCentre: number({
    id: 102, min: 1, max: 999, label: 'Cost centre', help: 'Cost centre, from 1 to 999.', isAsked: true,
  }),
  risk: word({ id: 103, words: ['LOW', 'MEDIUM', 'HIGH'], label: 'Risk', help: 'LOW, MEDIUM or HIGH.' }),
});

/** Fields that restrict`;

/** And one restriction. */
const NEW_RESTRICTION = `
  maxBody: restricting(
    number({ id: 104, min: 1, max: 1000, label: 'Largest body', help: 'Bytes of a body, at most.' }),
    {
      words: (most) => 'sends at most ' + most,
      kept: 'keeps its smaller body',
      closer: (values, than) => {
        const least = Math.min(...values.map((value) => value ?? Infinity));
        return least < Math.min(...than.map((value) => value ?? Infinity)) ? least : undefined;
      },
      common: (now, before) => (now === null || before === null ? (now ?? before) : Math.min(now, before)),
    },
  ),
});

/** Fields that a key gets`;

type Json = Record<string, unknown>;

const SET = { team: 'Payments', costCentre: 42, risk: 'HIGH' };
const FLAGS = ['--team', 'Payments', '--cost-centre', '42', '--risk', 'HIGH'];
const NONE = { team: null, costCentre: null, risk: null };

const fieldsOf = ({ team, costCentre, risk }: Json) => ({ team, costCentre, risk });

describe('fields that are added to the tables', () => {
  const copy = tempFolder();
  const node = (...args: string[]) => execFileSync(process.execPath, args, { cwd: copy, encoding: 'utf8' });

  before(() => {
    for (const path of COPIED) cpSync(join(ROOT, path), join(copy, path), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const table = join(copy, 'src/keys/key/fields.ts');
    const text = readFileSync(table, 'utf8');
    const labelled = text.replace('\n});\n\n/** Fields that restrict', NEW_FIELDS);
    const changed = labelled.replace('\n});\n\n/** Fields that are set when', NEW_RESTRICTION);
    assert.ok(labelled !== text && changed !== labelled);
    writeFileSync(table, changed);
    node('node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json');
    node('scripts/bundle.ts');
    node('scripts/manifest.ts');
  });

  const read = (path: string) => JSON.parse(readFileSync(join(copy, path), 'utf8')) as Json;
  const keysSchema = () => {
    writeFileSync(
      join(copy, 'schema.ts'),
      "import { keysSchema } from './src/features/apply/json-schema.ts';\nconsole.log(JSON.stringify(keysSchema()));\n",
    );
    return JSON.parse(node('schema.ts')) as Json;
  };

  it('are flags of create and update in the manifest, each with its help', () => {
    const manifest = JSON.parse(readFileSync(join(copy, 'oclif.manifest.json'), 'utf8')) as {
      commands: Record<string, { flags: Record<string, { description: string }> }>;
    };
    for (const command of ['apikey', 'apikey:create', 'apikey:update']) {
      const { flags } = manifest.commands[command]!;
      assert.deepEqual(
        ['team', 'cost-centre', 'risk'].map((flag) => flags[flag]?.description),
        ['Team of the key.', 'Cost centre, from 1 to 999.', 'LOW, MEDIUM or HIGH.'],
      );
    }
  });

  it('are filters of each command that selects keys if they say so', () => {
    const manifest = JSON.parse(readFileSync(join(copy, 'oclif.manifest.json'), 'utf8')) as {
      commands: Record<string, { flags: Record<string, { description: string }> }>;
    };
    for (const command of ['list', 'delete', 'disable', 'update']) {
      const { flags } = manifest.commands[`apikey:${command}`]!;
      const [flag, other] = command === 'update' ? ['where-team', 'where-risk'] : ['team', 'risk'];
      assert.deepEqual(
        [flags[flag]?.description, command === 'update' ? undefined : flags[other]],
        ['Only keys with this team.', undefined],
      );
    }
  });

  it('are at every door of the list that the other fields of their kind are at', () => {
    writeFileSync(
      join(copy, 'graphql.ts'),
      `import { print } from 'graphql';
      import { FEATURES } from './src/features/index.ts';
      import { typeDefsOf } from './src/graphql/schema.ts';
      import { createCatalog } from './src/keys/permissions/index.ts';
      process.stdout.write((await typeDefsOf(createCatalog(), FEATURES)).map(print).join('\\n'));`,
    );
    const program = {
      manifest: read('oclif.manifest.json'),
      graphql: node('graphql.ts'),
      schemas: { keys: keysSchema() },
    };
    const described = program as unknown as Descriptions;
    assert.deepEqual(doorsOf('team', 'team', described), [...FIELD_DOORS, ...FILTER_DOORS].toSorted());
    assert.deepEqual(doorsOf('costCentre', 'cost-centre', described), FIELD_DOORS.toSorted());
    assert.deepEqual(doorsOf('risk', 'risk', described), FIELD_DOORS.toSorted());
    assert.deepEqual(doorsOf('maxBody', 'max-body', described), doorsOf('allowFrom', 'allow-from', described));
  });

  it('are in the JSON Schema of declared keys', () => {
    const { $defs } = keysSchema() as { $defs: { key: { properties: Record<string, Json> } } };
    const { team, costCentre, risk } = $defs.key.properties;
    assert.deepEqual(
      [team!['maxLength'], costCentre!['maximum'], risk!['examples']],
      [20, 999, ['LOW', 'MEDIUM', 'HIGH']],
    );
  });

  it('have types in the library: a right program compiles, and a wrong one does not', () => {
    const program = (fields: string) => `
      import { type ApiKey, openKeys } from './dist/index.js';
      const keys = await openKeys({ database: 'x' });
      const { apiKey } = await keys.create({ name: 'CI', roles: ['GUEST'], ${fields} }, { actor: 'operator' });
      const risk: 'LOW' | 'MEDIUM' | 'HIGH' | null = (apiKey satisfies ApiKey).risk;
      const centre: number | null = apiKey.costCentre;
      export { risk, centre };
    `;
    writeFileSync(join(copy, 'right.ts'), program("team: 'Payments', costCentre: 42, risk: 'HIGH'"));
    writeFileSync(join(copy, 'wrong.ts'), program("team: 3, costCentre: '42', risk: 'NONE'"));
    const check = (file: string) => {
      const options = [
        '--ignoreConfig',
        '--noEmit',
        '--strict',
        '--skipLibCheck',
        '--module',
        'nodenext',
        '--target',
        'es2023',
      ];
      const args = ['node_modules/typescript/bin/tsc', ...options, '--types', 'node', file];
      const { stdout } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' });
      return Array.from(stdout.matchAll(/error TS\d+: (.*)/g), ([, message]) => message!);
    };
    assert.deepEqual(check('right.ts'), []);
    const problems = check('wrong.ts').join('\n');
    for (const type of ["'number'", `'"NONE"'`]) assert.ok(problems.includes(type), problems);
  });

  describeAlwaysOnEach('the doors of new fields', () => {
    let database: string;
    const folder = tempFolder();
    /** Variables with which commands reach the running server, if there is one. */
    let onServer: NodeJS.ProcessEnv | undefined;
    const run = (args: string[], { input = '', status = 0, program = copy, env: more = {} } = {}): string => {
      const env = {
        PATH: process.env['PATH'],
        HOME: folder,
        NO_COLOR: '1',
        ...(onServer ?? { SVC_API_DATABASE: database }),
        ...more,
      };
      const bin = join(program, 'bin/run.js');
      const result = spawnSync(process.execPath, [bin, ...args], { input, env, encoding: 'utf8' });
      assert.equal(result.status, status, `${args.join(' ')}: ${result.stdout}${result.stderr}`);
      return result.stdout;
    };
    const json = (args: string[], options = {}) => JSON.parse(run([...args, '--json'], options)) as Json;
    const shown = (name: string) => fieldsOf(json(['apikey', 'show', name]));
    const create = (name: string, ...flags: string[]) =>
      json(['apikey', 'create', '--name', name, '--roles', 'GUEST', ...flags]);
    const update = (...flags: string[]) => json(['apikey', 'update', '--name', 'CI', ...flags]);
    const assertChangesAndRemoves = () => {
      const { changes } = update('--team', 'Search', '--cost-centre', '7', '--risk', '');
      assert.deepEqual(changes, [
        { field: 'team', before: 'Payments', after: 'Search' },
        { field: 'costCentre', before: 42, after: 7 },
        { field: 'risk', before: 'HIGH', after: null },
      ]);
      update('--team', '', '--cost-centre', '');
      assert.deepEqual(shown('CI'), NONE);
    };
    beforeEach(() => {
      database = tempStore();
      create('CI', ...FLAGS);
    });

    it('each JSON document of the list has them', () => {
      const printed: Record<(typeof DOCUMENT_DOORS)[number], () => Json> = {
        KEY: () => json(['apikey', 'show', 'CI']),
        'create --dry-run': () => create('Dry', '--dry-run', ...FLAGS),
        export: () => JSON.parse(run(['apikey', 'export'])) as Json,
      };
      for (const door of DOCUMENT_DOORS) assert.deepEqual(fieldsOf(printed[door]()), SET, door);
    });

    it('create, show, and a dry run have them', () => {
      assert.deepEqual(shown('CI'), SET);
      create('Bare');
      assert.deepEqual(shown('Bare'), NONE);
      assert.deepEqual(fieldsOf(create('Dry', '--dry-run', ...FLAGS)), SET);
      assert.match(run(['apikey', 'show', 'CI']), /Payments/);
    });

    it('prompts ask for those that say so, and only for missing values', async () => {
      const args = [join(copy, 'bin/run.js'), 'apikey', 'create', '--roles', 'GUEST'];
      const env = { HOME: folder, SVC_API_DATABASE: database };
      const given = ['--description', '', '--expires-in', '1d', '--risk', 'LOW'];
      const terminal = new TerminalSession(process.execPath, [...args, ...given], env);
      try {
        await terminal.answer('? Name', `Asked${KEYS.enter}`);
        await terminal.answer('? Team (optional)', `Payments${KEYS.enter}`);
        await terminal.answer('? Cost centre (optional)', `many${KEYS.enter}`);
        await terminal.see('whole number from 1 to 999');
        terminal.type(`${KEYS.ctrlU}42${KEYS.enter}`);
        assert.equal(await terminal.end(), 0);
      } finally {
        terminal.close();
      }
      assert.deepEqual(shown('Asked'), { ...SET, risk: 'LOW' });
    });

    it('a review has them', () => {
      const [head, key] = run(['apikey', 'list', '--review', '--csv']).split('\r\n');
      assert.deepEqual(head!.split(',').slice(-3), ['"team"', '"cost_centre"', '"risk"']);
      assert.match(key!, /,"Payments","42","HIGH"$/);
      const { keys } = json(['apikey', 'list', '--review']) as { keys: Json[] };
      assert.deepEqual(fieldsOf(keys[0]!), SET);
    });

    it('update sets and removes them, and says what changes', () => {
      assertChangesAndRemoves();
    });

    it('errors have a code, and name the valid values', () => {
      for (const [flag, value, message] of [
        ['--team', 'x'.repeat(21), /21 characters long; at most 20/],
        ['--cost-centre', '1000', /whole number from 1 to 999/],
        ['--cost-centre', 'many', /whole number from 1 to 999/],
        ['--risk', 'HIHG', /Did you mean HIGH/],
      ] as const) {
        const { code, error } = json(['apikey', 'update', '--name', 'CI', flag, value], { status: 2 });
        assert.equal(code, 'INPUT_INVALID');
        assert.match(String(error), message);
      }
      assert.deepEqual(shown('CI'), SET);
    });

    it('lists have them as columns', () => {
      const table = run(['apikey', 'list', '--columns', 'name,team,cost-centre,risk']);
      assert.match(table, /CI\s+Payments\s+42\s+HIGH/);
    });

    const namesIn = (answer: Json) => (answer['keys'] as { name: string }[]).map(({ name }) => name);

    it('lists and changes of many keys select by the one that is a filter', () => {
      create('Other', '--team', 'Search');
      const listed = (...flags: string[]) => namesIn(json(['apikey', 'list', ...flags]));
      assert.deepEqual([listed('--team', 'PAYMENTS'), listed('--team', 'search')], [['CI'], ['Other']]);
      assert.deepEqual([listed('--team', 'Pay'), listed('--team', 'Search', '--owner', 'Ada')], [[], []]);
      run(['apikey', 'list', '--team', ' '], { status: 2 });
      run(['apikey', 'list', '--team', 'x'.repeat(21)], { status: 2 });
      run(['apikey', 'update', '--where-team', 'Search', '--team', 'Payments', '--yes']);
      assert.deepEqual([listed('--team', 'Payments'), listed('--team', 'Search')], [['CI', 'Other'], []]);
      assert.deepEqual(namesIn(json(['apikey', 'disable', '--team', 'Payments', '--dry-run'])), ['CI', 'Other']);
      run(['apikey', 'delete', '--team', 'payments', '--yes']);
      assert.deepEqual(listed(), []);
    });

    it('the library selects by it, and refuses the others', () => {
      const program = `
        import { openKeys, OPERATOR } from './dist/index.js';
        const keys = await openKeys({ database: process.argv[2] });
        const { keys: found } = await keys.list({ team: 'payments' }, { actor: OPERATOR });
        const refused = await keys.list({ risk: 'HIGH' }, { actor: OPERATOR }).catch(({ code }) => code);
        process.stdout.write(JSON.stringify([found.map(({ name }) => name), refused]));
        await keys.close();
      `;
      writeFileSync(join(copy, 'listing.mjs'), program);
      assert.deepEqual(JSON.parse(node('listing.mjs', database)), [['CI'], 'OPTION_INVALID']);
    });

    it('the audit log has them, and is verified with the keys', () => {
      update('--team', 'Search');
      const { entries } = json(['apikey', 'log']) as { entries: { action: string; after: Json }[] };
      const teams = Object.fromEntries(entries.map(({ action, after }) => [action, after['team']]));
      assert.deepEqual(teams, { CREATE: 'Payments', UPDATE: 'Search' });
      run(['apikey', 'log', '--verify']);
    });

    it('rotation keeps them, and a key that replaces another has its own', () => {
      run(['apikey', 'rotate', '--name', 'CI']);
      assert.deepEqual(shown('CI'), SET);
      create('CI', '--overwrite', '--team', 'Search');
      assert.deepEqual(shown('CI'), { ...NONE, team: 'Search' });
    });

    it('export has them, and import accepts them or reports errors', () => {
      const line = run(['apikey', 'export', '--with-digests']);
      assert.deepEqual(fieldsOf(JSON.parse(line) as Json), SET);
      run(['apikey', 'delete', '--name', 'CI', '--yes']);
      const wrong = line.replace('"costCentre":42', '"costCentre":"42"');
      assert.match(
        run(['apikey', 'import', '-', '--json'], { input: wrong, status: 2 }),
        /costCentre.*must be a number/,
      );
      run(['apikey', 'import', '-'], { input: line });
      assert.deepEqual(shown('CI'), SET);
    });

    it('apply creates and changes them, and shows where a file is wrong', () => {
      const file = (fields: Json) => {
        const path = join(folder, 'keys.yaml');
        writeFileSync(path, JSON.stringify({ keys: [{ name: 'CI', roles: ['GUEST'], ...fields }] }));
        return path;
      };
      const { changes } = json(['apikey', 'apply', file({ ...SET, team: 'Search', costCentre: null })]) as {
        changes: { changes: Json[] }[];
      };
      assert.deepEqual(changes[0]!.changes, [
        { field: 'team', before: 'Payments', after: 'Search' },
        { field: 'costCentre', before: 42, after: null },
      ]);
      assert.deepEqual(shown('CI'), { team: 'Search', costCentre: null, risk: 'HIGH' });
      const { error } = json(['apikey', 'apply', file({ costCentre: 1000, risk: 'NONE' })], { status: 2 });
      assert.match(String(error), /from 1 to 999/);
      assert.match(String(error), /The risk "NONE" is unknown/);
    });

    it('the version without them keeps their values, and each version finds store and log whole', () => {
      const older = (args: string[], options = {}) => run(args, { ...options, program: ROOT });
      const assertWhole = () => {
        for (const program of [copy, ROOT]) {
          run(['apikey', 'log', '--verify'], { program });
          const { checks } = json(['apikey', 'doctor'], { program }) as { checks: { status: string }[] };
          assert.deepEqual(
            checks.filter(({ status }) => status === 'failure'),
            [],
          );
        }
      };
      older(['apikey', 'create', '--name', 'Old', '--roles', 'GUEST', '--owner', 'Ada']);
      assertWhole();
      run(['apikey', 'update', '--name', 'Old', '--team', 'Search', '--risk', 'LOW']);
      const known = JSON.parse(older(['apikey', 'show', 'CI', '--json'])) as Json;
      assert.ok(!('team' in known));
      older(['apikey', 'update', '--name', 'CI', '--description', 'Changed', '--tag', 'env=prod']);
      older(['apikey', 'rotate', '--name', 'CI']);
      older(['apikey', 'disable', '--name', 'Old', '--yes']);
      assertWhole();
      assert.deepEqual(shown('CI'), SET);
      assert.deepEqual(shown('Old'), { team: 'Search', costCentre: null, risk: 'LOW' });
      const found = (...flags: string[]) => namesIn(json(['apikey', 'list', ...flags]));
      assert.deepEqual([found('--team', 'payments'), found('--team', 'search')], [['CI'], ['Old']]);
      assert.deepEqual(found('--tag', 'env=prod'), ['CI']);
      const lines = older(['apikey', 'export', '--with-digests']);
      assert.doesNotMatch(lines, /Payments|Search/);
      older(['apikey', 'import', '-'], { input: lines });
      assert.deepEqual(shown('CI'), SET);
      const backup = join(tempFolder(), 'backup');
      run(['backup', backup]);
      run(['apikey', 'update', '--name', 'Old', '--team', 'Sales']);
      run(['apikey', 'rotate', '--name', 'Old']);
      older(['restore', backup, '--yes', '--restore-revoked', 'Old']);
      assert.deepEqual([shown('Old')['team'], found('--team', 'sales')], ['Search', []]);
      run(['apikey', 'update', '--name', 'CI', '--team', '', '--cost-centre', '7']);
      older(['apikey', 'create', '--name', 'Old', '--roles', 'GUEST', '--overwrite']);
      older(['apikey', 'delete', '--name', 'CI', '--yes']);
      assert.deepEqual(shown('Old'), NONE);
      assertWhole();
      const entries = (json(['apikey', 'log']) as { entries: { after: Json | null }[] }).entries;
      assert.ok(entries.some(({ after }) => after?.['team'] === 'Search'));
    });

    describe('of one that restricts keys', () => {
      const bodyOf = (name: string) => json(['apikey', 'show', name])['maxBody'];
      beforeEach(() => update('--max-body', '50'));

      it('create, update, rotation, apply, and the log have it', () => {
        assert.equal(create('Dry', '--dry-run', '--max-body', '7')['maxBody'], 7);
        assert.match(run(['apikey', 'list', '--columns', 'name,max-body']), /CI\s+50/);
        json(['apikey', 'update', '--name', 'CI', '--max-body', '1001'], { status: 2 });
        run(['apikey', 'rotate', '--name', 'CI']);
        assert.equal(bodyOf('CI'), 50);
        const input = JSON.stringify({ keys: [{ name: 'CI', roles: ['GUEST'], ...SET, maxBody: 40 }] });
        const { changes } = json(['apikey', 'apply', '-'], { input }) as { changes: { changes: Json[] }[] };
        assert.deepEqual(changes[0]!.changes, [{ field: 'maxBody', before: 50, after: 40 }]);
        const { entries } = json(['apikey', 'log']) as { entries: { after: Json }[] };
        assert.deepEqual(
          entries.flatMap(({ after }) => after['maxBody'] ?? []),
          [50, 40],
        );
        run(['apikey', 'log', '--verify']);
      });

      it('an exported key is restricted as much when it is imported', () => {
        const line = run(['apikey', 'export', '--with-digests']);
        assert.equal((JSON.parse(line) as Json)['maxBody'], 50);
        run(['apikey', 'delete', '--name', 'CI', '--yes']);
        run(['apikey', 'import', '-'], { input: line });
        assert.equal(bodyOf('CI'), 50);
      });

      it('a restore lets no key do more than it can now, unless it is brought back', () => {
        const backup = join(tempFolder(), 'backup');
        run(['backup', backup]);
        const restore = (...flags: string[]) => {
          const { kept } = json(['restore', backup, '--yes', ...flags]) as { kept: { fields: string[] }[] };
          return [kept.flatMap(({ fields }) => fields), bodyOf('CI')];
        };
        update('--max-body', '40');
        assert.deepEqual(restore(), [['maxBody'], 40]);
        update('--max-body', '');
        assert.deepEqual(restore(), [[], 50]);
        update('--max-body', '40');
        assert.deepEqual(restore('--restore-revoked', 'CI'), [[], 50]);
        run(['apikey', 'log', '--verify']);
      });

      it('a key cannot exceed its own, restricts its children, and is contained', async () => {
        const { key } = create('Caller', '--roles', 'ADMIN', '--max-body', '100') as { key: string };
        const serve = await startServe(database, ['--port', '0'], { HOME: folder }, join(copy, 'bin/run.js'));
        onServer = { SVC_API_SERVER: serve.url, SVC_API_KEY: key };
        try {
          for (const name of ['CI', 'Caller']) {
            const wider = json(['apikey', 'update', '--name', name, '--max-body', '101'], { status: 1 });
            assert.deepEqual([wider['code'], bodyOf(name)], ['FORBIDDEN', name === 'CI' ? 50 : 100]);
          }
          update('--max-body', '100');
          create('Child', '--max-body', '500');
          const { limitedBy } = json(['apikey', 'show', 'Child']) as { limitedBy: Json[] };
          assert.deepEqual(
            limitedBy.map(({ name, maxBody }) => [name, maxBody]),
            [['Caller', 100]],
          );
        } finally {
          onServer = undefined;
          await serve.stop();
        }
        assert.equal(bodyOf('CI'), 100);
        run(['apikey', 'revoke', 'Caller', '--undo-changes', '--yes']);
        assert.equal(bodyOf('CI'), 50);
      });
    });

    describe('by a server', () => {
      let serve: ServeProcess;
      let ask: (document: string, variables?: object) => Promise<Json>;
      beforeEach(async () => {
        const { key } = create('Caller', '--roles', 'ADMIN') as { key: string };
        serve = await startServe(database, ['--port', '0'], { HOME: folder }, join(copy, 'bin/run.js'));
        onServer = { SVC_API_SERVER: serve.url, SVC_API_KEY: key };
        ask = async (document, variables = {}) => {
          const { body } = await query(serve.url, key, document, { ...variables });
          return { ...body.data, codes: body.errors?.map(({ extensions }) => extensions?.['code']) };
        };
      });
      afterEach(async () => {
        onServer = undefined;
        await serve.stop();
      });

      it('types and inputs have them, each with its help', async () => {
        const types = 'ApiKey ApiKeyPreview CreateApiKeyInput UpdateApiKeyInput DeclaredApiKeyInput ManyKeysUpdate';
        for (const name of types.split(' ')) {
          const { __type } = await ask(
            `query ($name: String!) { __type(name: $name) {
              fields { name description type { name } } inputFields { name description type { name } }
            } }`,
            { name },
          );
          const { fields, inputFields } = __type as { fields: Json[] | null; inputFields: Json[] | null };
          assert.deepEqual(
            (fields ?? inputFields)!.filter((field) => Object.hasOwn(SET, field['name'] as string)),
            [
              { name: 'team', description: 'Team of the key.', type: { name: 'String' } },
              { name: 'costCentre', description: 'Cost centre, from 1 to 999.', type: { name: 'Int' } },
              { name: 'risk', description: 'LOW, MEDIUM or HIGH.', type: { name: 'String' } },
            ],
            name,
          );
        }
      });

      it('requests read and write them, and answers report errors', async () => {
        const own = 'team costCentre risk';
        const input = { name: 'New', roles: ['GUEST'], ...SET };
        const { previewApiKey } = await ask(
          `query ($input: CreateApiKeyInput!) { previewApiKey(input: $input) { ${own} } }`,
          { input },
        );
        assert.deepEqual(previewApiKey, SET);
        const { createApiKey } = await ask(
          `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id ${own} } } }`,
          { input },
        );
        const { apiKey } = createApiKey as { apiKey: Json };
        assert.deepEqual(fieldsOf(apiKey), SET);
        const update = (change: Json) =>
          ask(`mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { ${own} } }`, {
            input: { id: apiKey['id'], ...change },
          });
        const changed = { team: null, costCentre: 7, risk: 'LOW' };
        assert.deepEqual((await update(changed))['updateApiKey'], changed);
        assert.deepEqual((await update({ costCentre: 1000 }))['codes'], ['INPUT_INVALID']);
        await ask(
          'mutation ($ids: [ID!]!, $update: ManyKeysUpdate!) { updateApiKeys(ids: $ids, update: $update) { keys { id } } }',
          { ids: [apiKey['id']], update: { team: 'Search', risk: null } },
        );
        const { apiKeys } = await ask(`{ apiKeys { edges { node { name ${own} } } } }`);
        const { edges } = apiKeys as { edges: { node: Json }[] };
        assert.deepEqual(fieldsOf(edges.find(({ node: { name } }) => name === 'New')!.node), {
          team: 'Search',
          costCentre: 7,
          risk: null,
        });
      });

      it('commands create, show, list, update and remove them', () => {
        assert.deepEqual(fieldsOf(create('Dry', '--dry-run', ...FLAGS)), SET);
        create('New', ...FLAGS);
        assert.deepEqual(shown('New'), SET);
        assert.match(run(['apikey', 'list', '--columns', 'name,team,cost-centre,risk']), /New\s+Payments\s+42\s+HIGH/);
        assertChangesAndRemoves();
        const { code } = json(['apikey', 'update', '--name', 'CI', '--risk', 'HIHG'], { status: 2 });
        assert.equal(code, 'INPUT_INVALID');
      });

      it('the one that is a filter selects keys: by GraphQL, for commands, and in the console', async () => {
        create('Other', '--team', 'Search');
        const { __type } = await ask(
          '{ __type(name: "Query") { fields { name args { name description type { name } } } } }',
        );
        const { fields } = __type as { fields: { name: string; args: Json[] }[] };
        for (const list of ['apiKeys', 'apiKeyList']) {
          const { args } = fields.find(({ name }) => name === list)!;
          assert.deepEqual(
            args.find(({ name }) => name === 'team'),
            { name: 'team', description: 'Only keys with this team.', type: { name: 'String' } },
          );
        }
        const { apiKeyList } = await ask('{ apiKeyList(team: "SEARCH") { keys { name } } }');
        assert.deepEqual(apiKeyList, { keys: [{ name: 'Other' }] });

        const listed = (...flags: string[]) => namesIn(json(['apikey', 'list', ...flags]));
        assert.deepEqual(listed('--team', 'search'), ['Other']);
        assert.deepEqual(listed('--team', 'search', '--sort', 'name'), ['Other']);
        assert.deepEqual(namesIn(json(['apikey', 'disable', '--team', 'payments', '--dry-run'])), ['CI']);

        const visitor = new Visitor(serve.url);
        await visitor.signIn(onServer!['SVC_API_KEY']!);
        const { html, text } = await visitor.open('keys?team=search');
        assert.match(html, /<span>Team<\/span><input name="team" value="search"/);
        assert.match(text, / Other /);
        assert.doesNotMatch(text, / CI /);
      });

      it('the console creates keys with them, shows and edits them', async () => {
        const visitor = new Visitor(serve.url);
        await visitor.signIn(onServer!['SVC_API_KEY']!);
        const { html } = await visitor.open('keys/new');
        for (const help of ['Team of the key.', 'Cost centre, from 1 to 999.', 'LOW, MEDIUM or HIGH.'])
          assert.ok(html.includes(help), help);
        const wrong = { team: 'x'.repeat(21), costCentre: 'many', risk: 'HIHG' };
        const draft = { name: 'Web', role: 'GUEST', expiry: 'latest', step: 'preview' };
        assert.match((await visitor.submit('keys/new', { ...draft, ...wrong })).text, /whole number from 1 to 999/);
        const { text } = await visitor.submit('keys/new', { ...draft, ...wrong, costCentre: '42' });
        assert.match(text, /21 characters long; at most 20.*Did you mean HIGH/);
        const texts = { team: 'Payments', costCentre: '42', risk: 'HIGH' };
        const facts = /Team Payments .*Cost centre 42 .*Risk HIGH/;
        assert.match((await visitor.submit('keys/new', { ...draft, ...texts })).text, facts);
        await visitor.submit('keys/new', { step: 'create' });
        assert.deepEqual(shown('Web'), SET);
        assert.match((await visitor.follow(/keys\/[0-9a-f-]{36}$/)).text, facts);
        await visitor.follow(/\/edit$/);
        assert.match((await visitor.submit('/edit', { costCentre: 'many' })).text, /whole number from 1 to 999/);
        assert.deepEqual(shown('Web'), SET);
        const saved = await visitor.submit('/edit', { team: 'Search', costCentre: '', risk: 'LOW' });
        assert.match(saved.text, /Saved.*Team Search .*Risk LOW/);
        assert.doesNotMatch(saved.text, /Cost centre/);
        assert.deepEqual(shown('Web'), { team: 'Search', costCentre: null, risk: 'LOW' });
        assert.match((await visitor.follow(/keys\/new\?from=/)).html, /value="Search"/);
      });

      it('apply plans and changes them', () => {
        const declared = { name: 'New', roles: ['GUEST'], ...SET };
        const apply = (key: Json, flags: string[] = [], status = 0) => {
          const input = JSON.stringify({ keys: [key] });
          const { changes } = json(['apikey', 'apply', '-', ...flags], { input, status });
          return (changes as { changes: Json[] }[])[0]!.changes;
        };
        apply(declared);
        assert.deepEqual(shown('New'), SET);
        const other = { ...declared, team: 'Search', costCentre: null };
        const expected = [
          { field: 'team', before: 'Payments', after: 'Search' },
          { field: 'costCentre', before: 42, after: null },
        ];
        assert.deepEqual(apply(other, ['--dry-run'], 2), expected);
        assert.deepEqual(shown('New'), SET);
        assert.deepEqual(apply(other), expected);
        assert.deepEqual(shown('New'), { team: 'Search', costCentre: null, risk: 'HIGH' });
      });
    });

    it('a backup has them, and restores the older values', () => {
      const backup = join(tempFolder(), 'backup');
      run(['backup', backup]);
      update('--team', 'Search', '--cost-centre', '', '--risk', 'LOW');
      run(['restore', backup, '--yes']);
      assert.deepEqual(shown('CI'), SET);
      run(['apikey', 'log', '--verify']);
    });
  });
});
