import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FieldDefinitionNode, Kind, parse, print, visit } from 'graphql';
import { ACTIONS, createCatalog, ROLES } from '../../src/keys/permissions/catalog.ts';
import { blockWith } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const { commands } = JSON.parse(read('oclif.manifest.json')) as {
  commands: Record<string, { flags: Record<string, object>; hidden?: boolean }>;
};

describe('docs/reference.md', () => {
  /** The lines of the synopsis, by command. */
  const synopsis = blockWith('svc-api serve', 'docs/reference.md', 'text')
    .replaceAll(/\n {2,}/g, ' ')
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [, topic, verbs] =
        /^svc-api (apikey|routes|notices|backup|restore|doctor|serve|guard|login|logout)(?: ([a-z|]+))?/.exec(line)!;
      return (verbs?.split('|') ?? ['']).map((verb) => ({ id: verb ? `${topic}:${verb}` : topic!, line }));
    });

  it('names every command', () => {
    assert.deepEqual(
      Object.keys(commands).filter((id) => !commands[id]!.hidden && !synopsis.some((each) => each.id === id)),
      [],
    );
  });

  it('names no flag that its command does not have', () => {
    const flags = synopsis.flatMap(({ id, line }) =>
      Array.from(line.matchAll(/ \[?--([a-z-]+)/g), ([, flag]) => ({ id, flag: flag! })),
    );
    assert.ok(flags.length > 60);
    assert.deepEqual(
      flags.filter(({ id, flag }) => commands[id]?.flags[flag] === undefined),
      [],
    );
  });
});

const catalog = createCatalog();
/** The list after a word, such as `Resources: A, B.` */
const listAfter = (word: string) =>
  new RegExp(`^${word}: ([^.]+)\\.`, 'm').exec(read('docs/reference.md'))![1]!.split(/,\s+/);

describe('docs/reference.md, on permissions', () => {
  it('names all resources, actions and roles', () => {
    assert.deepEqual(listAfter('Resources'), catalog.resources);
    assert.deepEqual(listAfter('Actions'), ACTIONS);
    const rows = Array.from(read('docs/reference.md').matchAll(/^\| ([A-Z]+) \| /gm), ([, role]) => role);
    assert.deepEqual(rows, ROLES);
  });

  it('says what the roles may do', () => {
    const guest = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];
    const connected = ['CLOUD', 'CONNECT', 'CONNECT__REMOTE_ACCESS'].flatMap((resource) => [
      `${resource}:READ_ANY`,
      `${resource}:UPDATE_ANY`,
    ]);
    const viewed = catalog.resources
      .filter((resource) => resource !== 'API_KEY' && resource !== 'ACTIVATION_CODE')
      .map((resource) => `${resource}:READ_ANY`);
    const sorted = (permissions: readonly string[]) => [...new Set(permissions)].toSorted();
    assert.deepEqual(sorted(catalog.permissionsOf('GUEST')), sorted(guest));
    assert.deepEqual(sorted(catalog.permissionsOf('CONNECT')), sorted([...connected, ...guest]));
    assert.deepEqual(sorted(catalog.permissionsOf('VIEWER')), sorted([...viewed, ...guest]));
  });
});

describe('docs/graphql.md', () => {
  /** The root fields of a schema, as written without descriptions and directives. */
  function rootFields(schema: string): string[] {
    const fields: string[] = [];
    const plain = visit(parse(schema), {
      Directive: () => null,
      StringValue: (_node, key) => (key === 'description' ? null : undefined),
    });
    for (const definition of plain.definitions) {
      const isObject =
        definition.kind === Kind.OBJECT_TYPE_DEFINITION || definition.kind === Kind.OBJECT_TYPE_EXTENSION;
      if (!isObject || !['Query', 'Mutation'].includes(definition.name.value)) continue;
      const own: readonly FieldDefinitionNode[] = definition.fields ?? [];
      fields.push(...own.map((field) => `${definition.name.value}.${print(field)}`));
    }
    return fields.toSorted();
  }

  it('shows the root fields as the schema has them', () => {
    assert.deepEqual(
      rootFields(blockWith('type Query', 'docs/graphql.md', 'graphql')),
      rootFields(read('docs/schema.graphql')),
    );
  });
});
