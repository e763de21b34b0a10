import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { MAX_LINE_LENGTH } from '../../src/keys/key/fields.ts';
import { MAX_NAME_LENGTH } from '../../src/keys/key/name.ts';
import { readDeclaration } from '../../src/features/apply/declaration.ts';
import { ROOT } from '../support/process.ts';

const schema = JSON.parse(readFileSync(join(ROOT, 'schemas/keys.schema.json'), 'utf8')) as object;
const isValid = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false, strictTypes: false }).compile(
  schema,
);

async function isRead(value: unknown): Promise<boolean> {
  try {
    await readDeclaration(value, createCatalog({ resources: ['GREENHOUSE'] }));
    return true;
  } catch {
    return false;
  }
}

const key = (fields: object) => ({ keys: [{ name: 'A', roles: ['GUEST'], ...fields }] });

const TAKEN: unknown[] = [
  { keys: [] },
  { $schema: 'keys.schema.json', keys: [] },
  key({}),
  ...['CI deploy', ' Ключ 1 ', 'e\u0301', '日本', 'हिन्दी', 'a'.repeat(MAX_NAME_LENGTH)].map((name) => key({ name })),
  ...[null, '', 'What it is for', 'é'.repeat(MAX_LINE_LENGTH)].map((description) => key({ description })),
  ...[null, '', 'Ada Lovelace', 'é'.repeat(200)].map((owner) => key({ owner })),
  ...[[], ['env=prod'], [' a.b/c-d_1 = Crème brûlée; x=1 ']].map((tags) => key({ tags })),
  ...[[], ['guest', ' Viewer ', 'CONNECT', 'admin']].map((roles) => key({ roles, permissions: ['DOCKER:READ_ANY'] })),
  ...[
    [],
    ['docker:read_any'],
    [' DOCKER : Create_Own '],
    ['CONNECT__REMOTE_ACCESS:DELETE_OWN'],
    ['GREENHOUSE:UPDATE_ANY'],
  ].map((permissions) => key({ permissions })),
  ...[null, '2030-12-31T23:59:59Z', '2030-12-31 23:59:59.5+02:00', ' 2030-12-31t23:59:59z '].map((expiresAt) =>
    key({ expiresAt }),
  ),
  ...[true, false].map((enabled) => key({ enabled })),
  { keys: [{ name: 'A', permissions: ['ME:READ_OWN'] }] },
];

const REFUSED: unknown[] = [
  null,
  [],
  'keys',
  {},
  { keys: {} },
  { keys: null },
  { keys: [], version: 1 },
  { keys: [], $schema: 1 },
  { keys: ['A'] },
  { keys: [null] },
  { keys: [{ roles: ['GUEST'] }] },
  { keys: [{ name: 'A' }] },
  { keys: [{ name: 'A', roles: [], permissions: [] }] },
  key({ colour: 'red' }),
  ...['', ' ', 'a-b', 'a\nb', '\u0301a', '../a', 12, null, 'a'.repeat(MAX_NAME_LENGTH + 1)].map((name) =>
    key({ name }),
  ),
  ...[12, ['a'], 'a\nb', 'a\u2028b', 'a'.repeat(MAX_LINE_LENGTH + 1)].map((description) => key({ description })),
  ...['GUEST', null, ['RÔLE'], [1], [null], ['GUEST,VIEWER'], ['']].map((roles) => key({ roles })),
  ...['DOCKER:READ_ANY', null, ['DOCKER'], ['DOCKER:READ_ANY:x'], [':READ_ANY'], [1], ['']].map((permissions) =>
    key({ permissions }),
  ),
  ...[2030, 'tomorrow', '2030-12-31', '2030-12-31T23:59:59', ''].map((expiresAt) => key({ expiresAt })),
  ...['yes', 1, null].map((enabled) => key({ enabled })),
];

describe('the JSON Schema of declared keys', () => {
  it('takes what apply takes', async () => {
    for (const value of TAKEN) {
      assert.equal(await isRead(value), true, `read: ${JSON.stringify(value)}`);
      assert.equal(isValid(value), true, `${JSON.stringify(value)}: ${JSON.stringify(isValid.errors)}`);
    }
  });

  it('refuses what apply refuses', async () => {
    for (const value of REFUSED) {
      assert.equal(await isRead(value), false, `read: ${JSON.stringify(value)}`);
      assert.equal(isValid(value), false, JSON.stringify(value));
    }
  });

  it('takes what only the installation and the other keys can tell is wrong', async () => {
    const { keys } = key({});
    for (const value of [
      key({ permissions: ['NOWHERE:READ_ANY'] }),
      key({ permissions: ['DOCKER:FLY'] }),
      key({ roles: ['BOSS'] }),
      key({ expiresAt: '2030-02-30T00:00:00Z' }),
      { keys: [...keys, ...keys] },
    ]) {
      assert.equal(await isRead(value), false);
      assert.equal(isValid(value), true, JSON.stringify(isValid.errors));
    }
  });

  it('takes the example, which names it', () => {
    const text = readFileSync(join(ROOT, 'examples/keys.yaml'), 'utf8');
    assert.match(text, /^# yaml-language-server: \$schema=\.\.\/schemas\/keys\.schema\.json\n/);
    assert.equal(isValid(parse(text)), true, JSON.stringify(isValid.errors));
  });
});
