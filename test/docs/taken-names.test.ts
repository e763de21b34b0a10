import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, visit } from 'graphql';
import { takenNames } from '../../src/cli/plugins/taken-names.ts';
import { COLUMN_NAMES } from '../../src/cli/views/key-view.ts';
import { kebab } from '../../src/keys/added/index.ts';
import { BARE_KEY } from '../../src/keys/key/index.ts';
import { DECLARED_FIELDS } from '../../src/features/apply/declaration.ts';
import { ROOT } from '../support/process.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface Named {
  readonly name: { readonly value: string };
  readonly fields?: readonly Named[];
  readonly arguments?: readonly Named[];
}

/** Names of other fields where GraphQL has labels, and other arguments beside filters. */
function namesInSchema(): string[] {
  const names: string[] = [];
  const namesOf = (nodes: readonly Named[] = []) => nodes.map(({ name }) => name.value);
  const collect = (node: Named) => {
    if (namesOf(node.fields).includes('tags')) names.push(...namesOf(node.fields));
    for (const field of node.fields ?? [])
      if (namesOf(field.arguments).includes('tags')) names.push(...namesOf(field.arguments));
  };
  visit(parse(read('docs/schema.graphql')), {
    ObjectTypeDefinition: (node) => collect(node as Named),
    InputObjectTypeDefinition: (node) => collect(node as Named),
  });
  return names;
}

/** Field names in the JSON of a key, without those of nested objects. */
function namesInJson(): string[] {
  const [, after = ''] = read('docs/json.md').split('A `KEY` has');
  const [, key = ''] = /```text\n\{(.*?)```/s.exec(after) ?? [];
  return Array.from(key.replaceAll(/\{[^{}]*\}/g, '').matchAll(/"([A-Za-z0-9]+)"/g), ([, name]) => name!);
}

/** Field names in the console's forms, which are also query parameters. */
function namesInForms(): string[] {
  return globSync('src/features/console/**/*.tsx', { cwd: ROOT }).flatMap((file) =>
    Array.from(
      read(file)
        .replaceAll(/<meta[^>]*>/g, '')
        .matchAll(/\bname="([a-z][A-Za-z]*)"/g),
      ([, name]) => name!,
    ),
  );
}

it('a field of a plugin cannot have a name or a flag that is there already', () => {
  const isTaken = takenNames();
  const schema = namesInSchema();
  const documents = namesInJson();
  const forms = namesInForms();
  assert.ok(schema.length > 100 && documents.length > 10 && forms.length > 20);
  const columns = COLUMN_NAMES.map((name) => name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()));
  const all = [...schema, ...documents, ...forms, ...Object.keys(BARE_KEY), ...DECLARED_FIELDS, ...columns];
  const free = [...new Set(all)].filter((name) => !isTaken(name, kebab(name)));
  assert.deepEqual(free, []);
  for (const name of ['team', 'costCentre', 'floor']) assert.equal(isTaken(name, kebab(name)), false);
});
