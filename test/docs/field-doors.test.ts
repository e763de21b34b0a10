import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Descriptions,
  DOCUMENT_DOORS,
  documentsWith,
  doorsOf,
  FIELD_DOORS,
  FILTER_DOORS,
} from '../support/field-doors.ts';
import { ROOT } from '../support/process.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('the list of doors of a field', () => {
  const program: Descriptions = {
    manifest: JSON.parse(read('oclif.manifest.json')) as Descriptions['manifest'],
    graphql: read('docs/schema.graphql'),
    schemas: {
      keys: JSON.parse(read('schemas/keys.schema.json')) as object,
      config: JSON.parse(read('schemas/config.schema.json')) as object,
    },
  };

  for (const [name, flag] of [
    ['owner', 'owner'],
    ['tags', 'tag'],
  ] as const)
    it(`has every flag, type and schema that carries ${name}`, () => {
      assert.deepEqual(doorsOf(name, flag, program), [...FIELD_DOORS, ...FILTER_DOORS].toSorted());
    });

  it('has every flag, type and schema that carries one without a filter', () => {
    assert.deepEqual(doorsOf('metadata', 'metadata', program), FIELD_DOORS.toSorted());
  });

  it('has every JSON document that carries labels', () => {
    for (const name of ['owner', 'tags', 'metadata', 'description'])
      assert.deepEqual(documentsWith(name, read('docs/json.md')), DOCUMENT_DOORS);
  });
});
