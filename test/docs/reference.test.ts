import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { ACTIONS, createCatalog, ROLES } from '../../src/keys/permissions/catalog.ts';
import { KEY_FILTERS } from '../../src/keys/lists/index.ts';
import { ROTATION_OPTIONS } from '../../src/keys/key/index.ts';
import { blockWith, blocksOf } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { query, startTestService } from '../support/server.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface KeyPage {
  edges: { node: { name: string } }[];
  pageInfo: { hasNextPage: boolean; endCursor: string };
}

const catalog = createCatalog();
/** The list after a word, as in `Resources: A, B.` */
const listAfter = (word: string) =>
  new RegExp(`^${word}: ([^.]+)\\.`, 'm').exec(read('docs/reference.md'))![1]!.split(/,\s+/);

describe('docs/reference.md, on permissions', () => {
  it('names all resources, actions and roles', () => {
    assert.deepEqual(listAfter('Resources'), catalog.resources);
    assert.deepEqual(listAfter('Actions'), ACTIONS);
    const rows = Array.from(read('docs/reference.md').matchAll(/^\| ([A-Z]+) \| /gm), ([, role]) => role);
    assert.deepEqual(rows, ROLES);
  });

  it('names the resources that svc-api itself uses', () => {
    const [, named = ''] = /uses only these resources: ([^.]+)\./.exec(read('docs/reference.md')) ?? [];
    const required = read('docs/schema.graphql').matchAll(/@requires\(resource: (\w+)/g);
    assert.deepEqual(named.split(/,\s+|\s+and\s+/), [...new Set(Array.from(required, ([, name]) => name!))].toSorted());
  });

  it('says what the roles may do', () => {
    const guest = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];
    const connected = ['CLOUD', 'CONNECT', 'CONNECT__REMOTE_ACCESS'].flatMap((resource) => [
      `${resource}:READ_ANY`,
      `${resource}:UPDATE_ANY`,
    ]);
    const viewed = catalog.resources
      .filter((resource) => !['API_KEY', 'ACTIVATION_CODE', 'EDGE'].includes(resource))
      .map((resource) => `${resource}:READ_ANY`);
    const sorted = (permissions: readonly string[]) => [...new Set(permissions)].toSorted();
    assert.deepEqual(sorted(catalog.permissionsOf('GUEST')), sorted(guest));
    assert.deepEqual(sorted(catalog.permissionsOf('CONNECT')), sorted([...connected, ...guest]));
    assert.deepEqual(sorted(catalog.permissionsOf('VIEWER')), sorted([...viewed, ...guest]));
  });
});

describe('docs/library/managing.md', () => {
  /** The names in the first column of a table. */
  const rowsOf = (heading: string) => {
    const table = read('docs/library/managing.md').split(`\n| ${heading} |`)[1]!.split('\n\n', 1)[0]!;
    return Array.from(table.matchAll(/^\| `(\w+)`/gm), ([, name]) => name!).toSorted();
  };

  it('has all filters of a list, and all options of a rotation', () => {
    assert.deepEqual(rowsOf('part of a query'), Object.keys(KEY_FILTERS).toSorted());
    assert.deepEqual(rowsOf('option of `keys.rotate`'), Object.keys(ROTATION_OPTIONS).toSorted());
  });
});

describe('the tables of options of the library', () => {
  const surface = read('docs/library-surface.d.ts');
  const tables = {
    BearerAuthOptions: ['docs/library/checking.md', 'bearerAuth'],
    ClientOptions: ['docs/library/client.md', 'createClient'],
    CreateAppOptions: ['docs/library/service.md', 'createApp'],
    OpenEdgeOptions: ['docs/library/opening.md', 'openEdge'],
    OpenKeysOptions: ['docs/library/opening.md', 'openKeys'],
  } as const;
  for (const [type, [page, called]] of Object.entries(tables))
    it(`have all of ${called}`, () => {
      const [, members] = surface.match(new RegExp(`^export interface ${type}\\b[^{]*{\\n(.*?)^}`, 'ms'))!;
      const names = Array.from(members!.matchAll(/^ {4}(\w+)\??:/gm), ([, name]) => name!);
      const table = read(page).split(`\n| option of \`${called}\` |`)[1]!.split('\n\n', 1)[0]!;
      const rows = Array.from(table.matchAll(/^\|(.*?)\|/gm), ([, row]) => row!).join();
      assert.notEqual(names.length, 0);
      assert.deepEqual(
        names.filter((name) => !rows.includes(`\`${name}\``)),
        [],
      );
    });
});

describe('docs/graphql.md', () => {
  it('begins with a query that works', async () => {
    const test = await startTestService();
    const { key: secret } = await test.keys.create({ name: 'CI deploy', roles: ['ADMIN'] }, OPERATOR);
    const { body } = await query(test.url, secret, blocksOf('docs/graphql.md', 'graphql')[0]!);
    await test.stop();
    const { data } = body as { data: { me: { name: string }; apiKeys: { edges: unknown[] } } };
    assert.deepEqual([data.me.name, data.apiKeys.edges.length], ['CI deploy', 1]);
  });

  it('creates a key, finds it, and changes it by its id', async () => {
    const test = await startTestService();
    const { key: secret } = await test.keys.create({ name: 'Ada', roles: ['ADMIN'] }, OPERATOR);
    const documents = blocksOf('docs/graphql.md', 'graphql');
    const mutations = Array.from(
      read('docs/graphql.md').matchAll(/^\| `(\w+\([^`]*\$id[^`]*\))` \| `([^`]*)` \|/gm),
      ([, field, fields]) => `${field} ${fields}`,
    );
    assert.equal(mutations.length, 5);
    const run = async (text: string, id?: string) => {
      const document = documents.find((each) => each.includes(text)) ?? `mutation ($id: ID!) { ${text} }`;
      const { body } = await query(test.url, secret, document, { id });
      return body as {
        data: Record<string, { id: string; key: string } | null>;
        errors?: { extensions: { code: string } }[];
      };
    };
    const { data: created } = await run('createApiKey');
    const id = (await run('apiKey(name:')).data['apiKey']!.id;
    const { data: rotated } = await run('rotateApiKey', id);
    assert.notEqual(rotated['rotateApiKey']!.key, created['createApiKey']!.key);
    const codes: unknown[] = [];
    for (const field of mutations) codes.push((await run(field, id)).errors?.[0]!.extensions.code);
    await test.stop();
    // The rotation is finished before it could be rolled back.
    assert.deepEqual(codes, [undefined, undefined, undefined, 'ROTATION_NONE', undefined]);
  });

  it('has a query that pages through all keys', async () => {
    const test = await startTestService();
    const { key: secret } = await test.keys.create({ name: 'Key 1', roles: ['ADMIN'] }, OPERATOR);
    for (const number of [2, 3]) await test.keys.create({ name: `Key ${number}`, roles: ['GUEST'] }, OPERATOR);
    const document = blockWith('hasNextPage', 'docs/graphql.md', 'graphql').replace('first: 100', 'first: 2');
    const pages: string[][] = [];
    for (let variables = {}; ;) {
      const { body } = await query(test.url, secret, document, variables);
      const { edges, pageInfo } = (body as { data: { apiKeys: KeyPage } }).data.apiKeys;
      pages.push(edges.map(({ node }) => node.name));
      if (!pageInfo.hasNextPage) break;
      variables = { after: pageInfo.endCursor };
    }
    await test.stop();
    assert.deepEqual(
      pages.map(({ length }) => length),
      [2, 1],
    );
    assert.deepEqual(pages.flat().toSorted(), ['Key 1', 'Key 2', 'Key 3']);
  });
});
