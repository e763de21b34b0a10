import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import {
  buildASTSchema,
  concatAST,
  getNamedType,
  getNullableType,
  type GraphQLOutputType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  validate,
} from 'graphql';
import { FEATURES } from '../../src/features/index.ts';
import { typeDefsOf } from '../../src/graphql/schema.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { createSecret } from '../../src/keys/secret/secret.ts';
import { prefixOf, readSecret } from '../../src/keys/secret/index.ts';
import type { ServerRequest } from '../../src/keys/operations/index.ts';
import { REQUESTS } from '../../src/remote/requests.ts';
import { ROOT } from '../support/process.ts';

const schema = buildASTSchema(concatAST(await typeDefsOf(createCatalog(), FEATURES)));
/** The requests of the core and of features. */
const ALL: Readonly<Record<string, ServerRequest<unknown>>> = { ...REQUESTS };
for (const path of globSync('src/features/*/requests.ts', { cwd: ROOT }))
  Object.assign(ALL, ((await import(join(ROOT, path))) as { REQUESTS: object }).REQUESTS);
const secret = createSecret(randomBytes).text;
const prefix = prefixOf(readSecret(secret)!.publicId);
/** Scalars with a special format. */
const FORMS: Readonly<Record<string, string>> = {
  key: secret,
  prefix,
  previousPrefix: prefix,
  before: '1',
  after: '2',
};
const SCALARS: Readonly<Record<string, unknown>> = {
  Boolean: true,
  Int: 1,
  Float: 1.5,
  DateTime: '2030-01-01T00:00:00Z',
  JsonObject: {},
};

/** A value that the schema allows. @param hasAll whether nullable fields have values */
function valueOf(
  type: GraphQLOutputType,
  name: string,
  selected: SelectionSetNode | undefined,
  hasAll: boolean,
): unknown {
  return isNonNullType(type) || hasAll ? presentOf(getNullableType(type), name, selected, hasAll) : null;
}

function presentOf(
  type: ReturnType<typeof getNullableType<GraphQLOutputType>>,
  name: string,
  selected: SelectionSetNode | undefined,
  hasAll: boolean,
): unknown {
  if (isListType(type)) return [valueOf(type.ofType, name, selected, hasAll)];
  if (isEnumType(type)) return type.getValues()[0]!.name;
  if (!isObjectType(type)) return SCALARS[getNamedType(type).name] ?? FORMS[name] ?? 'x';
  const fields = selected!.selections.map((selection) => {
    assert.ok(selection.kind === Kind.FIELD);
    const { name: field, selectionSet } = selection;
    return [field.value, valueOf(type.getFields()[field.value]!.type, field.value, selectionSet, hasAll)];
  });
  return Object.fromEntries(fields) as object;
}

/** Copies of a value, each with one part replaced by a value of another type. */
function others(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [{}, [], typeof value === 'string' ? 7 : '7'];
  if (Array.isArray(value)) return [7, {}, ...others(value[0]).map((item) => [item])];
  return Object.entries(value).flatMap(([name, inner]) =>
    [undefined, ...others(inner)].map((other) => ({ ...value, [name]: other })),
  );
}

describe('a request to a server', () => {
  for (const [name, request] of Object.entries(ALL))
    it(`of ${name} fits the published schema, and takes each answer that this allows, and no other`, () => {
      const anything = new Proxy<Record<string, unknown>>({}, { get: () => 'given' });
      const document = parse(request.documentFor(anything));
      assert.deepEqual(validate(schema, document), []);
      const { operation, selectionSet } = document.definitions[0] as OperationDefinitionNode;
      const [root] = selectionSet.selections;
      assert.ok(root?.kind === Kind.FIELD);
      const { type } = schema.getRootType(operation)!.getFields()[root.name.value]!;
      const answerWith = (hasAll: boolean) => ({
        [root.name.value]: presentOf(getNullableType(type), root.name.value, root.selectionSet, hasAll),
      });
      for (const hasAll of [true, false]) assert.doesNotThrow(() => request.read(answerWith(hasAll)));
      for (const data of others(answerWith(true))) assert.throws(() => request.read(data), JSON.stringify(data));
      for (const data of [null, {}, { [root.name.value]: () => 7 }]) assert.throws(() => request.read(data));
    });
});
