import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSchema, GraphQLInputObjectType, GraphQLObjectType } from 'graphql';
import { type TestCli, testCli } from '../support/cli.ts';
import { tempFolder } from '../support/temp.ts';

const schema = buildSchema(readFileSync('docs/schema.graphql', 'utf8'));
const fieldsOf = (name: string): string[] => {
  const type = schema.getType(name);
  assert.ok(type instanceof GraphQLObjectType || type instanceof GraphQLInputObjectType);
  return Object.keys(type.getFields());
};

/** Inputs for creating a key that are not fields of it. */
const INSTRUCTIONS = new Set(['expiresIn', 'overwrite']);
const GIVEN = fieldsOf('CreateApiKeyInput').filter((field) => !INSTRUCTIONS.has(field));
/** Fields that the service sets. */
const ASSIGNED = ['id', 'prefix', 'createdAt', 'createdBy', 'disabledAt', 'managed', 'audience', 'person', 'rotation'];
/** Fields computed from other keys, usage or the policy. */
const DERIVED =
  `answering unknownGrants grants budgets access effectivePermissions limitedBy ancestors descendants branch
  issued status disabledByPolicy uses lastUsedAt usage usedPermissions usedTools usedRoutes suggestedRoles
  suggestedPermissions unusedPermissions excessPermissions`.split(/\s+/);

const inDays = (days: number) => new Date(Math.floor(Date.now() / 1000) * 1000 + days * 86_400_000).toISOString();
const [EXPIRES_AT, LATER] = [inDays(100), inDays(200)];

const VALUES: Record<string, unknown> = {
  name: 'Whole',
  description: 'for all doors',
  owner: 'Ada',
  tags: ['env=prod', 'team=ops'],
  metadata: { plan: 'pro' },
  roles: ['VIEWER'],
  permissions: ['DOCKER:UPDATE_ANY'],
  limits: ['100/m'],
  allowFrom: ['10.0.0.0/8'],
  expiresAt: EXPIRES_AT,
};
/** All fields with other values that each allow more. */
const WIDENED = [
  '--rename',
  'Other',
  '--description',
  'other',
  '--owner',
  'Eve',
  '--tag',
  'env=test',
  '--metadata',
  '{"plan":"free"}',
  '--roles',
  'ADMIN',
  '--permissions',
  'DOCKER:CREATE_ANY',
  '--rate',
  '200/m',
  '--allow-from',
  '0.0.0.0/0',
  '--expires-at',
  LATER,
];
const AUDIENCE = 'https://mcp.example.org/mcp';

const FLAGS = [
  '--name',
  'Whole',
  '--description',
  'for all doors',
  '--owner',
  'Ada',
  '--tag',
  'env=prod',
  '--tag',
  'team=ops',
  '--metadata',
  '{"plan":"pro"}',
  '--roles',
  'VIEWER',
  '--permissions',
  'DOCKER:UPDATE_ANY',
  '--rate',
  '100/m',
  '--allow-from',
  '10.0.0.0/8',
  '--expires-at',
  EXPIRES_AT,
];

/** The given fields of a document, which must have all of them. */
const given = (document: Record<string, unknown>) => Object.fromEntries(GIVEN.map((field) => [field, document[field]]));

interface Manifest {
  commands: { 'apikey:import': { description: string } };
}

describe('a key with all fields', () => {
  let cli: TestCli;
  beforeEach(() => {
    cli = testCli();
  });
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli.run(args);
    assert.equal(code, 0, stderr || stdout);
    return stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await run(...args, '--json')) as Record<string, unknown>;
  const show = (name = 'Whole') => json('apikey', 'show', name);
  const file = (text: string) => {
    const path = join(tempFolder(), 'input');
    writeFileSync(path, text);
    return path;
  };
  const importLine = (line: object) => run('apikey', 'import', file(JSON.stringify(line)));
  const exportLine = async (...args: string[]) =>
    JSON.parse((await run('apikey', 'export', ...args)).split('\n')[0]!) as Record<string, unknown>;
  const restoreAfter = async (change: () => Promise<unknown>) => {
    const path = join(tempFolder(), 'backup.sqlite');
    await run('backup', path);
    await change();
    await run('restore', path, '--yes');
  };

  it('has each field of the schema here, as one that is given, assigned or derived', () => {
    assert.deepEqual(fieldsOf('ApiKey').toSorted(), [...GIVEN, ...ASSIGNED, ...DERIVED].toSorted());
    assert.deepEqual(Object.keys(VALUES).toSorted(), GIVEN.toSorted());
    // A preview combines roles and permissions.
    const previewed = fieldsOf('ApiKeyPreview').flatMap((field) =>
      field === 'grants' ? ['roles', 'permissions'] : field,
    );
    for (const fields of [fieldsOf('UpdateApiKeyInput'), previewed])
      assert.deepEqual(
        GIVEN.filter((field) => !fields.includes(field)),
        [],
      );
  });

  /** Ways to create the key. */
  const makers: Record<string, () => Promise<unknown>> = {
    create: () => run('apikey', 'create', ...FLAGS),
    import: () => importLine({ ...VALUES, secret: 'an-imported-secret-of-some-length' }),
    apply: () => run('apikey', 'apply', '-f', file(JSON.stringify({ keys: [VALUES] })), '--secrets-dir', tempFolder()),
    update: async () => {
      await run('apikey', 'create', '--name', 'Other', '--roles', 'GUEST');
      await run('apikey', 'update', 'Other', ...FLAGS.with(0, '--rename'));
    },
    'a restore of a key that was deleted': async () => {
      await makers['create']!();
      const path = join(tempFolder(), 'backup.sqlite');
      await run('backup', path);
      await run('apikey', 'delete', 'Whole', '--yes');
      await run('restore', path, '--yes', '--restore-revoked', 'Whole');
    },
    'a restore of a key that was changed': async () => {
      await makers['create']!();
      await restoreAfter(() => run('apikey', 'update', 'Whole', ...WIDENED));
    },
    'a restore in place of a store': async () => {
      await makers['create']!();
      const path = join(tempFolder(), 'backup.sqlite');
      await run('backup', path);
      cli = testCli();
      await run('restore', path, '--yes', '--force');
    },
    'an export and an import': async () => {
      await makers['create']!();
      const lines = await run('apikey', 'export', '--with-digests');
      cli = testCli();
      await run('apikey', 'import', file(lines));
    },
    copy: async () => {
      await makers['create']!();
      const other = testCli();
      await run('apikey', 'export', '--to', other.database);
      cli = other;
    },
  };
  /** Ways to read it. */
  const readers: Record<string, () => Promise<Record<string, unknown>>> = {
    show,
    list: async () => ((await json('apikey', 'list'))['keys'] as Record<string, unknown>[])[0]!,
    export: exportLine,
  };
  for (const [maker, make] of Object.entries(makers))
    it(`is complete after ${maker}, wherever it is read`, async () => {
      await make();
      for (const [reader, read] of Object.entries(readers)) assert.deepEqual(given(await read()), VALUES, reader);
    });

  it('is whole in a dry run of create', async () => {
    assert.deepEqual(given(await json('apikey', 'create', ...FLAGS, '--dry-run')), VALUES);
  });

  it('is whole in the audit log, when it is created and each time that it is changed', async () => {
    await makers['create']!();
    const newest = async () =>
      (
        (await json('apikey', 'log', '--limit', '1'))['entries'] as Record<
          'before' | 'after',
          Record<string, unknown>
        >[]
      )[0]!;
    assert.deepEqual(given((await newest()).after), VALUES);
    await run('apikey', 'update', 'Whole', ...WIDENED);
    const { before, after } = await newest();
    assert.deepEqual(given(before), VALUES);
    assert.deepEqual(Object.keys(after).toSorted(), GIVEN.toSorted());
  });

  it('keeps what the service has assigned where it is exported and imported, or restored', async () => {
    const person = { issuer: 'https://id.example.org', subject: 'ada', name: 'Ada' };
    const ids = ['9b2e9b0e-6a0b-4c53-9b43-1f5d2c0d7a11', '9b2e9b0e-6a0b-4c53-9b43-1f5d2c0d7a12'];
    await importLine({ ...VALUES, id: ids[0], secret: 'an-imported-secret-of-some-length' });
    await importLine({
      ...VALUES,
      name: 'Child',
      id: ids[1],
      createdBy: ids[0],
      audience: AUDIENCE,
      disabled: true,
      secret: 'x'.repeat(30),
    });
    await importLine({ name: 'Ada', roles: ['GUEST'], person });
    const all = async () => (await run('apikey', 'export', '--with-digests')).split('\n').filter(Boolean).toSorted();
    const before = await all();
    await restoreAfter(async () => {
      await run('apikey', 'update', 'Child', '--owner', '', '--description', '');
      await run('apikey', 'update', 'Whole', '--tag', 'env=test');
    });
    assert.deepEqual(await all(), before);
    const line = JSON.parse(before.find((text) => text.includes('"Child"'))!) as Record<string, unknown>;
    assert.deepEqual([line['createdBy'], line['audience'], line['disabled']], [ids[0], AUDIENCE, true]);
    // The help of import lists every field of a line.
    const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as Manifest;
    const help = manifest.commands['apikey:import'].description;
    const known = new Set([...before.flatMap((text) => Object.keys(JSON.parse(text) as object)), 'secret']);
    assert.deepEqual(
      [...known].filter((field) => !help.includes(`"${field}"`)),
      [],
    );
  });
});
